"""What a body does to `ctx.options` changes nothing."""

from __future__ import annotations

import pytest

from engine import RollbackContext, StepContext, WorkflowStep, workflow
from engine.testing import workflow_test

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_registry")]


def test_options_that_a_body_gets_are_a_copy() -> None:
    """CF-07"""
    attempts: list[int] = []

    def spoil(ctx: StepContext) -> None:
        attempts.append(ctx.options.max_attempts)
        object.__setattr__(ctx.options, "max_attempts", 1)
        raise ConnectionError("away")

    def undo(ctx: RollbackContext) -> None:
        attempts.append(-ctx.options.max_attempts)
        object.__setattr__(ctx.options, "max_attempts", 1)
        raise ConnectionError("away")

    def neighbour(ctx: StepContext) -> None:
        attempts.append(ctx.options.max_attempts)

    @workflow(defaults={"max_attempts": 3})
    async def story(step: WorkflowStep) -> None:
        await step.do("first", str, rollback=undo, rollback_options={"max_attempts": 2})
        await step.do("neighbour", neighbour)
        await step.do("spoil", spoil)

    with workflow_test(story) as test:
        assert test.run().status == "errored"
    assert attempts == [3, 3, 3, 3, -2, -2]
    assert story.step_defaults.max_attempts == 3
