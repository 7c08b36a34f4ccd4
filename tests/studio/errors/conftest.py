"""Workflows that fail, and what their pages show."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from engine import StepContext, WorkflowStep, workflow
from engine.models import Instance
from tests.stories import run_to_end
from tests.studio import factories

Fail = Callable[..., Instance]


@pytest.fixture
def fail(engine_db: None, own_registry: None) -> Fail:
    """Run an instance whose step charge_card fails, of any workflow, with any message and number of attempts."""

    def charge(ctx: StepContext, message: str) -> None:
        if message != "well":
            raise TimeoutError(message)

    async def handle(step: WorkflowStep, params: dict[str, str]) -> None:
        async def body(ctx: StepContext) -> None:
            charge(ctx, params["message"].replace("NUL", "\0"))

        await step.do(params.get("step", "charge_card"), body, max_attempts=2, delay=0)

    known = {}

    def run(name: str = "orders", message: str = "no answer within 5 s", **params: str) -> Instance:
        if name not in known:
            known[name] = workflow(name=name)(handle)
        return run_to_end(known[name].start({"message": message, **params}))

    return run


@pytest.fixture
def people(engine_db: None) -> Callable[[str], Client]:
    """Sign a user of a role in."""

    def sign_in(role: str) -> Client:
        client = Client()
        client.force_login(factories.person(role, role))
        return client

    return sign_in
