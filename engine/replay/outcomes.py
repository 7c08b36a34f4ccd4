"""Between what is recorded and what a handler sees: outcomes, errors and endings as JSON text, and back."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.core.exceptions import SynchronousOnlyOperation

from engine.replay.history import EventRecord, StepRecord
from engine.replay.sensitive import MASK, output_masked
from engine.replay.unawaited import check_awaited
from engine.values import between_steps
from engine.values.error_record import cut
from engine.values.errors import (
    AbortWorkflow,
    CompleteWorkflow,
    ControlFlow,
    ErrorRecord,
    EventTimeoutError,
    FailWorkflow,
    InvalidValueError,
    NonDeterminismError,
    RepriseError,
    RequestTimeoutError,
    StepError,
)
from engine.values.serialization import JSON, encode
from engine.values.serialization.envelope import masked_text
from engine.values.states import InstanceStatus, StepKind

if TYPE_CHECKING:
    from engine.declare.registry import Workflow

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LOG_FIELDS_LIMIT = 16 * 1024
_TIMEOUTS: dict[str, type[EventTimeoutError]] = {
    StepKind.EVENT: EventTimeoutError,
    StepKind.REQUEST: RequestTimeoutError,
}


@dataclass(frozen=True, slots=True)
class Ending:
    """How an instance ends. `output` and `error` are JSON text."""

    status: InstanceStatus
    output: str | None = None
    error: str | None = None
    rolls_back: bool = False  # somebody asked for the rollbacks, or they have begun
    dropped: str = ""  # what of the output is not kept


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
            "What this instance wanted to record was refused twice, so it was paused as it is. Resume it when the "
            f"cause is mended, or terminate it. The last refusal: {cut(str(error), 1000)}"
        )


def moment(us: int) -> datetime:
    """Return the moment that many microseconds after the epoch."""
    return EPOCH + timedelta(microseconds=us)


def micros(when: datetime) -> int:
    return (when - EPOCH) // timedelta(microseconds=1)


# Errors


def error_json(error: BaseException, *, step: str = "", attempts: int = 0) -> str:
    return kept_json(ErrorRecord.of(error), step=step, attempts=attempts)


def kept_json(kept: ErrorRecord, *, step: str = "", attempts: int = 0) -> str:
    data: dict[str, JSON] = {**kept.to_json()}
    if step:
        data |= {"step": step, "attempts": attempts}
    return json.dumps(data)


def given_up(error: Exception) -> str:
    return error_json(GivenUpError(error))


def recorded_error(record: StepRecord) -> Exception:
    """Make the error that the handler sees from what is recorded: the same live and on every replay."""
    kept = json.loads(record.error or "{}")
    details = kept.get("details") or {}
    if record.kind in _TIMEOUTS:
        types = details.get("type", list(record.event_types))
        seconds = timedelta(seconds=details.get("timeout", 0))
        return _TIMEOUTS[record.kind](record.name, types, seconds)
    return StepError(
        kept.get("step", record.name),
        kept.get("type", "Error"),
        kept.get("message", ""),
        kept.get("attempts", 1),
        details,
    )


def params_refused(params: str, error: Exception) -> NonDeterminismError:
    if isinstance(error, NonDeterminismError):
        return error
    return NonDeterminismError(
        "The recorded params do not match the type that the handler now declares.",
        recorded=cut(masked_text(params), 200),
        current=_mismatch(error),
    )


def output_refused(record: StepRecord, error: Exception, label: str = "") -> NonDeterminismError:
    if isinstance(error, NonDeterminismError):
        return error  # it says already which inner step's, or which key is missing
    if record.sensitive and isinstance(error, InvalidValueError):
        error = output_masked(error)
    return NonDeterminismError(
        f'The recorded output of step "{label or record.name}" does not match the type that the code now declares.',
        recorded=MASK if record.sensitive else cut(masked_text(record.output or "null"), 200),
        current=_mismatch(error),
    )


def _mismatch(error: Exception) -> str:
    if isinstance(error, InvalidValueError):  # its own text says that the value cannot be stored
        return cut(f"at {error.path}, {error.message.rstrip('.')}", 1000)
    return cut(str(error), 1000)


# Endings


def of_handler(main: asyncio.Task[Any], workflow: Workflow[Any, Any]) -> Ending:
    """Tell how the handler ended: its return value, or what it raised."""
    if main.cancelled():
        return of_error(asyncio.CancelledError("The handler cancelled itself."))
    error = main.exception()
    if isinstance(error, ControlFlow):
        return of_control_flow(error, workflow)
    if isinstance(error, SynchronousOnlyOperation):
        return of_error(between_steps.of_database(error))
    return _complete(main.result(), workflow) if error is None else of_error(error)


def of_control_flow(flow: ControlFlow, workflow: Workflow[Any, Any]) -> Ending:
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
    """End as `errored`. A step's failure that nobody caught is shown as what the step raised."""
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


def _complete(value: Any, workflow: Workflow[Any, Any]) -> Ending:
    try:
        check_awaited("it was returned as the workflow's output", value)
        stored = workflow.output.store(value, what="workflow's output")
        return Ending(InstanceStatus.COMPLETE, output=stored.text, dropped=stored.dropped)
    except Exception as error:  # noqa: BLE001 - the user's types, whose validators may raise anything
        return of_error(error)


def _said(type: str, message: object) -> str:
    text = cut(message if isinstance(message, str) else _shown(message))
    return json.dumps({"type": type, "message": text, "details": {}, "traceback": ""})


# Events and logs


def event_json(event: EventRecord) -> str:
    """Return a received event as its wait records it; the payload goes in as it was stored."""
    head = json.dumps({"type": event.type, "sent_by": event.sent_by, "received_us": event.received_us})
    return f'{head[:-1]}, "payload": {event.payload}}}'


def not_kept(dropped: str) -> str:
    """Return the line that tells of keys of an output for which its type has no place."""
    return f"Part of the output was not kept: {dropped}."


def log_line(
    level: str, message: str, fields: dict[str, Any], at_us: int
) -> tuple[str, str, str | None, int]:
    """Make a line storable, whatever was said: a log call never fails the workflow."""
    text = cut(message if isinstance(message, str) else _shown(message))
    return level, text, _fields(fields), at_us


def _fields(fields: dict[str, Any]) -> str | None:
    if not fields:
        return None
    try:
        return encode(fields, what="log fields", limit=LOG_FIELDS_LIMIT)
    except Exception:  # noqa: BLE001 - whatever the fields are, the line is kept, with what can be shown of them
        return json.dumps({name: cut(_shown(value), 500) for name, value in list(fields.items())[:50]})


def _shown(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a user's __str__
        return f"(a {type(value).__qualname__})"
