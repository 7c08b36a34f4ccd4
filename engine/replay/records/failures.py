"""The failures of a cycle: which group each belongs to, and which was the latest."""

from __future__ import annotations

import json
from dataclasses import dataclass

from engine.values import fingerprint
from engine.values.errors import ChildWorkflowError, ErrorRecord, EventTimeoutError, StepError
from engine.values.fingerprint import Failed
from engine.values.records import AttemptRecord, StepRecord
from engine.values.states import AttemptPhase

_LOST = ErrorRecord(fingerprint.LOST, fingerprint.LOST_MESSAGE)
_ORIGIN = "_origin"  # an attribute of a StepError; its public ones are recorded as details


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

    def give_up(self, attempt: AttemptRecord | None) -> None:
        """Note that a rollback has failed for good with this attempt."""
        if attempt is not None:
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


def mark(error: StepError, record: StepRecord) -> None:
    """Let the error of a step remember what its last attempt raised."""
    setattr(error, _ORIGIN, (record.name, record.error, record.sensitive))


def origin_of(error: BaseException, kept: ErrorRecord) -> Origin:
    """Return where the error that ended a handler comes from. `kept` is its record."""
    if isinstance(error, StepError) and hasattr(error, _ORIGIN):
        step, text, is_sensitive = getattr(error, _ORIGIN)
        return Origin(ErrorRecord.from_json(json.loads(text or "{}")), step, is_sensitive)
    if isinstance(error, ChildWorkflowError):  # without the child's message, which has a group of its own
        why = "" if error.error is None else f": {error.error.type}"
        said = f"The child is {error.status}{why}"
        return Origin(ErrorRecord(kept.type, said, traceback=_unquoted(kept)), error.step)
    if isinstance(error, EventTimeoutError):
        return Origin(kept, error.step)
    return Origin(kept, is_sensitive=_quotes_a_sensitive_step(error))


def _unquoted(kept: ErrorRecord) -> str:
    """Return the traceback without the message at its end."""
    return kept.traceback.rpartition(f"\n{kept.type}: {kept.message}")[0] or kept.traceback


def _quotes_a_sensitive_step(error: object) -> bool:
    """Tell whether the message of an error may contain that of a sensitive step."""
    seen = 0
    while isinstance(error, BaseException) and seen < 20:
        if getattr(error, _ORIGIN, (None, None, False))[2]:
            return True
        error, seen = error.__cause__ or error.__context__, seen + 1
    return False
