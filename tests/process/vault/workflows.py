"""Workflows that note, as a digest, which secret reached them where; and that fail beside it."""

from __future__ import annotations

import time
from typing import Any

from pydantic import BaseModel, Secret, SecretBytes, SecretStr

from engine import (
    Event,
    NonRetryableError,
    RollbackContext,
    StepContext,
    StepError,
    WorkflowStep,
    define_step,
    workflow,
)
from tests.process.vault.notes import note

LONG = 600


class Login(BaseModel):
    user: str
    password: SecretStr
    key: SecretBytes | None = None
    many: dict[str, list[SecretStr]] = {}
    inner: Secret[dict[str, Any]] | None = None
    fails: bool = False


class Code(BaseModel):
    pin: SecretStr
    note: str = ""


code_came = Event("code-came", Code)


def make(login: Login) -> Login:
    note("step", login.password)
    return login


def undo(ctx: RollbackContext) -> None:
    note("rollback-output", ctx.output.password)
    note("rollback-argument", ctx.args[0].password)


@define_step
def defined(password: SecretStr) -> SecretStr:
    note("defined-step", password)
    return password


def each(password: SecretStr, index: int) -> SecretStr:
    note("item", password)
    return password


def hang(password: SecretStr, ctx: StepContext) -> None:
    note(f"attempt-{ctx.attempt}", password)
    ctx.log.info("in the body", password=password, held={"password": password})
    if ctx.attempt == 1:
        time.sleep(LONG)


def fail(password: SecretStr, ctx: StepContext) -> None:
    """Fail as programs do that have a secret at hand."""
    plain = password.get_secret_value()
    if ctx.attempt == 1:
        Login.model_validate({"password": plain, "fails": [plain]})
    error = NonRetryableError(f"refused: {password!r} {Login(user='ada', password=password)}")
    error.password = password  # type: ignore[attr-defined]
    error.login = Login(user="ada", password=password)  # type: ignore[attr-defined]
    raise error


def misfit(password: SecretStr) -> Login:
    return {"user": 5, "password": password.get_secret_value()}  # type: ignore[return-value]


@workflow
async def keeper(step: WorkflowStep, login: Login) -> Login:
    await step.do("child", note, "child", login.password)
    return login


@workflow
async def vault(step: WorkflowStep, login: Login) -> Login:
    """Take a secret by every way."""
    await step.do("params", note, "params", login.password)
    made = await step.do("make", make, login, rollback=undo)
    await step.do("output", note, "output", made.password)
    await step.run(defined, login.password)
    await step.map("each", [login.password, made.password], each)
    back = await step.run_workflow("keep", keeper, made)
    await step.do("child-output", note, "child-output", back.password)
    code = await step.wait_for_event("code", code_came)
    await step.do("event", note, "event", code.payload.pin)
    answer = await step.request("pin", Code, message="Which PIN?")
    await step.do("answer", note, "answer", answer.value.pin)
    await step.do("hidden", make, login, sensitive=True)
    await step.do("hang", hang, login.password)
    for body in (fail, misfit):
        try:
            await step.do("fail", body, login.password, delay=0.01)
        except StepError as error:
            step.log.warning("failed", error=str(error), login=login, password=login.password)
    if login.fails:
        await step.fail(f"so it goes with {login.password}")
    return made
