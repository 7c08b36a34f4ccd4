"""How an instance ends, with its output or its error as JSON text, and what decides that it does."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.exceptions import SynchronousOnlyOperation

from engine.replay.calls.unawaited import check_awaited
from engine.replay.records.failures import OfStep, Origin, of_group, origin_of
from engine.replay.records.log_lines import text_of
from engine.replay.records.outcomes import error_json, kept_json
from engine.replay.state import CycleState
from engine.values import between_steps
from engine.values.error_record import RAISED, cut
from engine.values.errors import (
    AbortWorkflow,
    CompleteWorkflow,
    ControlFlow,
    ErrorRecord,
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
    origin: Origin | None = None  # of a failure


class DeadlockError(RepriseError):
    """The handler waits, and nothing that is open can ever wake it. The instance ends as errored.

    Await durable operations only, or futures and locks that another branch of the handler sets. Then restart the
    instance.
    """

    def __init__(self) -> None:
        super().__init__(
            "The handler waits for something that no step, sleep or event will ever complete. Await durable "
            "operations only, or futures and locks that another branch of the handler sets."
        )


class GivenUpError(RepriseError):
    """Neither what the instance recorded nor its end could be written. The instance is paused as it is.

    Fix the cause, which the end of the message quotes, and resume the instance, or terminate it.
    """

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
            said = ErrorRecord("WorkflowFailed", text_of(flow.message))
            return Ending(InstanceStatus.ERRORED, error=kept_json(said), origin=Origin(said))
        case _:
            return of_error(flow)


def of_error(error: BaseException) -> Ending:
    """End as `errored`. The failure of a step that nobody caught is shown as what the step raised."""
    kept = ErrorRecord.of(error)
    text = kept_json(kept)
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
    elif (failed := of_group(error)) is not None:
        text = _naming_step(text, failed)
    return Ending(InstanceStatus.ERRORED, error=text, origin=origin_of(error, kept))


def _naming_step(text: str, failed: OfStep) -> str:
    """Add to the record of an exception group which step failed, and with what."""
    data = json.loads(text)
    data["step"] = failed.step
    if isinstance(failed, StepError):
        data["attempts"] = failed.attempts
        raised = {"type": failed.type, "message": failed.message}
    else:
        kept = ErrorRecord.of(failed)
        raised = {"type": kept.type, "message": kept.message}
    data["details"] = {**data["details"], RAISED: raised}
    return json.dumps(data)


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


class Decision:
    """What is decided about the end of the instance."""

    def __init__(self, cycle: CycleState) -> None:
        claimed = cycle.claimed
        self._cycle = cycle
        self.decided: ControlFlow | None = None  # by the handler, whatever it does afterwards
        self.forced: Ending | None = None  # without asking the handler
        # How the instance ends after its rollbacks, once these have begun.
        self.after_rollbacks: Ending | None = None
        if claimed.ends_as:
            self.after_rollbacks = Ending(
                InstanceStatus(claimed.ends_as), error=claimed.error, rolls_back=True
            )
        # How it ends once the handler has received what is recorded.
        self.cut_short: Ending | None = self.after_rollbacks

    def decide(self, flow: ControlFlow) -> ControlFlow:
        """End the instance this way, whatever the handler does with the exception; return what to raise."""
        if self._cycle.loop.is_closed():
            return flow
        self.decided = self.decided or flow
        return self.decided

    def force(self, ending: Ending) -> None:
        """End the instance this way without asking the handler, which does not react."""
        self.forced = self.forced or ending

    @property
    def is_by_handler(self) -> bool:
        """Tell whether the handler itself came to its end, and was not cut short."""
        main = self._cycle.main
        has_returned = main is not None and main.done() and not main.cancelled()
        return self.forced is None and (self.decided is not None or has_returned)

    def found(self) -> Ending | None:
        """Return how the handler has ended; None if it has not."""
        cycle = self._cycle
        if self.forced is not None:
            return self.forced
        if self.decided is not None:
            return of_control_flow(self.decided, cycle.workflow)
        if cycle.main is not None and cycle.main.done():
            return of_handler(cycle.main, cycle.workflow)
        return None

    def rolls_back(self, ending: Ending) -> bool:
        """Tell whether rollbacks run before an instance ends this way."""
        if ending.rolls_back:
            return True
        cycle = self._cycle
        return ending.status == InstanceStatus.ERRORED and any(
            record.is_to_be_undone and (record.is_recorded or record.seq in cycle.writes.steps)
            for record in cycle.history.steps.values()
        )
