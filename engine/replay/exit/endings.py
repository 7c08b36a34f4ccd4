"""How an instance ends: complete, errored or terminated, with its output or its error as JSON text."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.exceptions import SynchronousOnlyOperation

from engine.replay.calls.unawaited import check_awaited
from engine.replay.records.log_lines import text_of
from engine.replay.records.outcomes import error_json
from engine.values import between_steps
from engine.values.error_record import cut
from engine.values.errors import (
    AbortWorkflow,
    CompleteWorkflow,
    ControlFlow,
    FailWorkflow,
    RepriseError,
    StepError,
)
from engine.values.states import InstanceStatus

if TYPE_CHECKING:
    from engine.declare.registry import Workflow


@dataclass(frozen=True, slots=True)
class Ending:
    """How an instance ends. `output` and `error` are JSON text."""

    status: InstanceStatus
    output: str | None = None
    error: str | None = None
    rolls_back: bool = False  # the rollbacks were requested, or have begun
    dropped: str = ""  # the keys of the output that are not kept


class DeadlockError(RepriseError):
    """The handler waits, and nothing that is open can ever wake it."""

    def __init__(self) -> None:
        super().__init__(
            "The handler waits for something that no step, sleep or event will ever complete. Await durable "
            "operations only, or futures and locks that another branch of the handler sets."
        )


class GivenUpError(RepriseError):
    """Neither what the instance recorded nor its end could be written."""

    def __init__(self, error: Exception) -> None:
        super().__init__(
            "What this instance wanted to record was refused twice, so it was paused as it is. Fix the cause and "
            f"resume it, or terminate it. The last refusal: {cut(str(error), 1000)}"
        )


def of_handler(main: asyncio.Task[Any], workflow: Workflow[Any, Any]) -> Ending:
    """Return how the handler ended: its return value, or what it raised."""
    if main.cancelled():
        return of_error(asyncio.CancelledError("The handler cancelled itself."))
    error = main.exception()
    if isinstance(error, ControlFlow):
        return of_control_flow(error, workflow)
    if isinstance(error, SynchronousOnlyOperation):
        return of_error(between_steps.of_database(error))
    return _complete(main.result(), workflow) if error is None else of_error(error)


def of_control_flow(flow: ControlFlow, workflow: Workflow[Any, Any]) -> Ending:
    """Return how `step.complete`, `step.abort` or `step.fail` ends the instance."""
    match flow:
        case CompleteWorkflow():
            return _complete(flow.output, workflow)
        case AbortWorkflow():
            return Ending(InstanceStatus.TERMINATED, error=_said("Aborted", flow.reason))
        case FailWorkflow():
            return Ending(InstanceStatus.ERRORED, error=_said("WorkflowFailed", flow.message))
        case _:
            return of_error(flow)


def of_error(error: BaseException) -> Ending:
    """End as `errored`. The failure of a step that nobody caught is shown as what the step raised."""
    text = error_json(error)
    if isinstance(error, StepError):
        data = json.loads(text)
        data |= {
            "type": error.type,
            "message": error.message,
            "step": error.step,
            "attempts": error.attempts,
            "details": error.details,
        }
        text = json.dumps(data)
    return Ending(InstanceStatus.ERRORED, error=text)


def terminated() -> Ending:
    return Ending(InstanceStatus.TERMINATED, rolls_back=True)


def deadlock() -> Ending:
    return of_error(DeadlockError())


def given_up(error: Exception) -> str:
    """Return the reason (JSON text) for pausing an instance whose writes were refused twice."""
    return error_json(GivenUpError(error))


def _complete(value: Any, workflow: Workflow[Any, Any]) -> Ending:
    try:
        check_awaited("it was returned as the workflow's output", value)
        stored = workflow.output.store(value, what="workflow's output")
        return Ending(InstanceStatus.COMPLETE, output=stored.text, dropped=stored.dropped)
    except Exception as error:  # noqa: BLE001 - the user's types, whose validators may raise anything
        return of_error(error)


def _said(type: str, message: object) -> str:
    return json.dumps({"type": type, "message": text_of(message), "details": {}, "traceback": ""})
