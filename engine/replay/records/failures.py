"""The failures of a cycle: which group each belongs to, and which was the latest."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from engine.values import fingerprint
from engine.values.errors import ChildWorkflowError, ErrorRecord, EventTimeoutError, StepError
from engine.values.fingerprint import Failed
from engine.values.json_type import JSON
from engine.values.records import AttemptRecord, StepRecord
from engine.values.states import AttemptPhase

_LOST = ErrorRecord(fingerprint.LOST, fingerprint.LOST_MESSAGE)
_ORIGIN = "_origin"  # an attribute of a StepError; its public ones are recorded as details
_NO_ORIGIN = ("", None, False)
_RECORD = "_record"  # an attribute of a StepError: its step, whose delivery number may be set later
_QUOTES = "quotes_sensitive"  # a key of a recorded error
_MOST_LINKS = 100

OfStep = StepError | ChildWorkflowError | EventTimeoutError


@dataclass(frozen=True, slots=True)
class Origin:
    """The error that ends an instance, as it was raised, and the step that raised it, if one did."""

    error: ErrorRecord
    step: str = ""
    is_sensitive: bool = False


class Failures:
    """Notes the groups of attempts that fail, and of the instance's end.

    `latest` is the group of the latest failure in this cycle. That of a rollback is not, unless it has failed for good:
    the instance fails because of what is rolled back.
    """

    def __init__(self, workflow: str) -> None:
        self._workflow = workflow
        self.latest: str | None = None

    def fail(
        self, attempt: AttemptRecord, record: StepRecord, error: ErrorRecord, cause: object = None
    ) -> None:
        """Note the group of an attempt that has ended with this error. `cause` is the exception, if it is known."""
        attempt.failed = fingerprint.failed(
            error,
            workflow=self._workflow,
            step=record.name,
            phase=attempt.phase,
            is_sensitive=record.sensitive or _quotes_a_sensitive_step(cause),
        )
        attempt.fingerprint, attempt.failed_us = attempt.failed.fingerprint, attempt.finished_us
        if attempt.phase == AttemptPhase.DO:
            self.latest = attempt.fingerprint

    def lose(self, attempt: AttemptRecord, record: StepRecord) -> None:
        """Note the group of an attempt whose worker died."""
        self.fail(attempt, record, _LOST)

    def give_up(self, attempt: AttemptRecord) -> None:
        """Note that a rollback has failed for good with this attempt."""
        self.latest = attempt.fingerprint

    def of_end(self, origin: Origin | None) -> Failed | None:
        """Return the group of the instance's end; None if it is no failure."""
        if origin is None:
            return None
        return fingerprint.failed(
            origin.error,
            workflow=self._workflow,
            step=origin.step,
            is_sensitive=origin.is_sensitive,
            of_attempts=False,  # or else its attempt has made the group before
        )


def json_of(kept: ErrorRecord, error: BaseException, *, step: str, attempts: int) -> str:
    """Return the record of an attempt's error as JSON text. It says if it may quote what a sensitive step raised."""
    data: dict[str, JSON] = {**kept.to_json(), "step": step, "attempts": attempts}
    return json.dumps(data | {_QUOTES: True} if _quotes_a_sensitive_step(error) else data)


def mark(error: StepError, record: StepRecord, kept: Mapping[str, JSON]) -> None:
    """Let the error of a step remember what its last attempt raised."""
    setattr(error, _ORIGIN, (record.name, record.error, record.sensitive or _QUOTES in kept))
    setattr(error, _RECORD, record)


def of_group(error: BaseException) -> OfStep | None:
    """Return the failure of a step in an exception group, also in a nested one: the first that the handler received."""
    if not isinstance(error, BaseExceptionGroup):
        return None
    found: list[OfStep] = []
    waiting: list[BaseException] = [error]
    seen = 0
    while waiting and seen < _MOST_LINKS:
        one, seen = waiting.pop(), seen + 1
        if isinstance(one, BaseExceptionGroup):
            waiting += reversed(one.exceptions)  # a TaskGroup lists them in the order of their end
        elif isinstance(one, StepError | ChildWorkflowError | EventTimeoutError):
            found.append(one)
    if all(hasattr(one, _RECORD) for one in found):
        found.sort(key=_delivery)
    return next(iter(found), None)


def _delivery(error: OfStep) -> float:
    delivery = getattr(error, _RECORD).delivery
    return math.inf if delivery is None else delivery


def origin_of(error: BaseException, kept: ErrorRecord) -> Origin:
    """Return where the error that ended a handler comes from. `kept` is its record."""
    inner = of_group(error)
    if inner is not None:
        return origin_of(inner, ErrorRecord.of(inner))
    if isinstance(error, StepError) and hasattr(error, _ORIGIN):
        step, text, is_sensitive = getattr(error, _ORIGIN)
        return Origin(ErrorRecord.from_json(json.loads(text or "{}")), step, is_sensitive)
    if isinstance(error, ChildWorkflowError):  # without the child's message, which has a group of its own
        why = "" if error.error is None else f": {error.error.type}"
        trace = kept.traceback.rpartition(f"\n{kept.type}: {kept.message}")[0] or kept.traceback
        return Origin(
            ErrorRecord(kept.type, f"The child is {error.status}{why}", traceback=trace), error.step
        )
    if isinstance(error, EventTimeoutError):
        return Origin(kept, error.step)
    return Origin(kept, is_sensitive=_quotes_a_sensitive_step(error))


def _quotes_a_sensitive_step(error: object) -> bool:
    """Tell whether the message of an error may contain that of a sensitive step: it, a cause or a part of it does."""
    waiting, seen = [error], 0
    while waiting and seen < _MOST_LINKS:
        one, seen = waiting.pop(), seen + 1
        if getattr(one, _ORIGIN, _NO_ORIGIN)[2]:
            return True
        if isinstance(one, BaseException):
            waiting += filter(None, (one.__cause__, one.__context__))
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
    return False
