"""A workflow whose params, outputs, event and answer hold secrets, under a key that stays."""

from __future__ import annotations

from pydantic import BaseModel, Secret, SecretBytes, SecretStr

from engine import Event, WorkflowStep, workflow
from engine.declare.registry import Workflow
from engine.models import Instance, Step
from engine.steer import requests
from tests.shifts import run_to_end, running_shift, wait_for, wait_until

KEYS = ["golden-key-that-stays-in-the-source-of-the-tests"]


class Login(BaseModel):
    user: str
    password: SecretStr
    pins: list[Secret[int]] = []


def sign(login: Login) -> dict[str, SecretBytes]:
    return {"signature": SecretBytes(login.password.get_secret_value().encode())}


async def golden_secret(step: WorkflowStep, login: Login) -> SecretStr:
    signed = await step.do("sign", sign, login)
    event = await step.wait_for_event("code", "golden-code")
    typed = await step.wait_for_event("again", Event("golden-code", Login))
    answer = await step.request("pin", SecretStr, message="The PIN?")
    got = [
        login.password.get_secret_value(),
        signed["signature"].get_secret_value().decode(),
        event.payload["password"].get_secret_value(),
        typed.payload.password.get_secret_value(),
        answer.value.get_secret_value(),
        *(str(pin.get_secret_value()) for pin in login.pins),
    ]
    if got != ["p", "p", "e", "f", "a", "7"]:
        await step.fail("a secret is not what it was")
    return answer.value


def declare() -> Workflow[Login, SecretStr]:
    Event("golden-code", Login)
    return workflow("golden-secret")(golden_secret)


def secret() -> Instance:
    instance = declare().start({"user": "ada", "password": "p", "pins": [7]})  # type: ignore[arg-type]
    for password in ("e", "f"):
        instance.send_event("golden-code", {"user": "ada", "password": password}, by="ada")
    with running_shift():
        asked = Step.objects.filter(instance=instance, name="pin", status="waiting")
        wait_until(asked.exists, what="the question")
        requests.answer(instance, "pin", "a", by="ada")
        wait_for(instance)
    instance = run_to_end(instance)
    assert instance.status == "complete", instance.error
    return instance
