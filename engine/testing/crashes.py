"""Crashes of the worker that a test requests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.replay.attempts.attempt import AttemptedOperation
from engine.replay.cycle import Cycle
from engine.replay.records.history import AttemptRecord, StepRecord
from engine.replay.records.writes import Writes
from engine.testing.targets import Target, by_number
from engine.values.states import AttemptPhase, AttemptStatus, StepKind, StepStatus

OVER = (AttemptStatus.COMPLETE, AttemptStatus.ERRORED, AttemptStatus.TIMED_OUT)
DECIDED = (StepStatus.COMPLETE, StepStatus.ERRORED)


class Life:
    """Whether a worker is alive."""

    def __init__(self) -> None:
        self.is_over = False


@dataclass(slots=True, eq=False)
class Crash:
    """Where the worker dies, once: before a body starts, or after it has ended and before that is recorded."""

    target: Target
    is_after: bool
    attempt: int | None = None
    stay_down: bool = False
    has_come: bool = False

    def __str__(self) -> str:
        which = "" if self.attempt is None else f", attempt {self.attempt}"
        return f"crash_{'after' if self.is_after else 'before'}({self.target}{which})"


class Crashes:
    """All crashes that have not happened yet."""

    def __init__(self) -> None:
        self._all: list[Crash] = []

    def add(self, crash: Crash) -> None:
        self._all.append(crash)

    def unused(self) -> list[str]:
        return [str(one) for one in self._all if not one.has_come]

    def at_body(self, operation: AttemptedOperation, attempt: AttemptRecord) -> Crash | None:
        """Return the crash that happens now that a recorded attempt is about to start."""
        is_rollback = attempt.phase == AttemptPhase.ROLLBACK
        for one in self._left(is_after=False):
            if one.attempt in (None, attempt.number) and one.target.fits(
                operation.record, by_number(operation.cycle), is_rollback=is_rollback
            ):
                return one
        return None

    def at_flush(self, batch: Iterable[tuple[Cycle, Writes]]) -> Crash | None:
        """Return the crash that happens now that these writes are about to be made."""
        left = list(self._left())
        if not left:
            return None
        return next((one for cycle, writes in batch for one in left if _hits(one, cycle, writes)), None)

    def _left(self, *, is_after: bool | None = None) -> Iterable[Crash]:
        return (one for one in self._all if not one.has_come and is_after in (None, one.is_after))


def _hits(crash: Crash, cycle: Cycle, writes: Writes) -> bool:
    steps = by_number(cycle)
    if not crash.is_after:
        begun = (record for seq, record in writes.steps.items() if _begins(record, seq, writes))
        return any(crash.target.fits(record, steps) for record in begun)
    return any(
        crash.target.fits(record, steps, is_rollback=is_rollback)
        for record, is_rollback in _ended(crash, writes, steps)
    )


def _begins(record: StepRecord, seq: int, writes: Writes) -> bool:
    """Return whether these writes start the step. A `do` crashes after its attempt has been recorded."""
    return record.kind != StepKind.DO and seq in writes.starts and not record.is_recorded


def _ended(crash: Crash, writes: Writes, steps: dict[int, StepRecord]) -> Iterable[tuple[StepRecord, bool]]:
    for attempt in writes.attempts.values():
        if attempt.status in OVER and crash.attempt in (None, attempt.number):
            yield steps[attempt.step_seq], attempt.phase == AttemptPhase.ROLLBACK
    for record in writes.steps.values():
        # An atomic step has recorded its own end; here only its delivery is written.
        is_other = record.kind != StepKind.DO or (record.stands and record.delivery is not None)
        if is_other and record.status in DECIDED and crash.attempt in (None, record.attempts):
            yield record, False
