"""A workflow that fails, and whose steps are rolled back."""

from __future__ import annotations

from engine import NonRetryableError, RollbackContext, StepError, WorkflowStep, define_step, workflow
from engine.declare.registry import Workflow
from engine.models import Instance
from tests.shifts import run_to_end


@define_step
def reserve(place: str) -> list[str]:
    return [place]


@reserve.rollback(max_attempts=2)
def release(context: RollbackContext) -> None:
    context.log.info("released", place=context.args[0])


def give_back(context: RollbackContext) -> None:
    context.log.info("given back", output=context.output)


def refuse() -> None:
    raise NonRetryableError("the card is stolen")


async def golden_undone(step: WorkflowStep) -> None:
    await step.run(reserve, "a-1")
    packed = await step.do("pack", lambda: ["wrapped"], rollback=give_back)
    step.log.info("packed", what=packed)
    try:
        await step.do("charge", refuse, rollback=give_back)
    except StepError as error:
        await step.fail(f"not paid: {error.message}")


def declare() -> Workflow[None, None]:
    return workflow("golden-undone")(golden_undone)


def undone() -> Instance:
    instance = run_to_end(declare().start())
    assert (instance.status, instance.rollback) == ("errored", "complete"), instance.error
    return instance
