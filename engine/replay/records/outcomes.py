"""Outcomes as they are recorded, as JSON text, and as a handler sees them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from engine.replay.records import failures
from engine.replay.records.history import EventRecord, StepRecord
from engine.replay.records.sensitive import MASK, output_masked
from engine.values.error_record import cut
from engine.values.errors import (
    ErrorRecord,
    EventTimeoutError,
    InvalidValueError,
    NonDeterminismError,
    RequestTimeoutError,
    StepError,
)
from engine.values.serialization import JSON
from engine.values.serialization.envelope import masked_text
from engine.values.states import StepKind

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMEOUTS: dict[str, type[EventTimeoutError]] = {
    StepKind.EVENT: EventTimeoutError,
    StepKind.REQUEST: RequestTimeoutError,
}


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


def recorded_error(record: StepRecord) -> Exception:
    """Return the error that the handler gets: the same live and on every replay."""
    kept = json.loads(record.error or "{}")
    details = kept.get("details") or {}
    if record.kind in _TIMEOUTS:
        types = details.get("type", list(record.event_types))
        seconds = timedelta(seconds=details.get("timeout", 0))
        return _TIMEOUTS[record.kind](record.name, types, seconds)
    error = StepError(
        kept.get("step", record.name),
        kept.get("type", "Error"),
        kept.get("message", ""),
        kept.get("attempts", 1),
        details,
    )
    failures.mark(error, record, kept)
    return error


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
        return error  # it already names the inner step, or the missing key
    if record.sensitive and isinstance(error, InvalidValueError):
        error = output_masked(error)
    return NonDeterminismError(
        f'The recorded output of step "{label or record.name}" does not match the type that the code now declares.',
        recorded=MASK if record.sensitive else cut(masked_text(record.output or "null"), 200),
        current=_mismatch(error),
    )


def _mismatch(error: Exception) -> str:
    if isinstance(error, InvalidValueError):  # its full text says that the value cannot be stored
        return cut(f"at {error.path}, {error.message.rstrip('.')}", 1000)
    return cut(str(error), 1000)


# Events


def event_json(event: EventRecord) -> str:
    """Return a received event as its wait records it, with the payload as it was stored."""
    head = json.dumps({"type": event.type, "sent_by": event.sent_by, "received_us": event.received_us})
    return f'{head[:-1]}, "payload": {event.payload}}}'
