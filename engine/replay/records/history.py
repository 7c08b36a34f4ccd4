"""What an instance has recorded, as its cycle holds it in memory, in the records of `engine.values.records`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from engine.values.identity import TOP, StepIdentity
from engine.values.records import AttemptRecord, EventRecord, LogLine, StepRecord
from engine.values.states import AttemptPhase, AttemptStatus, StepKind, StepStatus

__all__ = ["AttemptRecord", "EventRecord", "History", "LogLine", "Page", "StepRecord"]

SPENT = frozenset({AttemptStatus.ERRORED, AttemptStatus.TIMED_OUT})


@dataclass(frozen=True, slots=True)
class Page:
    """Buffered events, oldest first. `is_cut`: there may be more. None that came before `as_of_us` is missing."""

    events: list[EventRecord]
    as_of_us: int
    is_cut: bool = False


@dataclass(slots=True)
class History:
    """The recorded steps of one generation, and what a cycle needs to continue from them."""

    steps: dict[StepIdentity, StepRecord] = field(default_factory=dict)
    running: dict[int, AttemptRecord] = field(default_factory=dict)
    # The last attempt at each step whose delay function has not answered yet.
    unasked: dict[int, AttemptRecord] = field(default_factory=dict)
    # Attempts at the rollback that is under way, by its step.
    undoing: dict[int, list[AttemptRecord]] = field(default_factory=dict)
    # The first generation that any of these steps ran in, where a restart has kept some.
    first_generation: int | None = None
    last_seq: int = 0
    last_delivery: int = 0
    log_lines: int = 0
    events: Page = Page([], 0)  # the first ones
    # The inner steps of each step, by its number.
    inner: dict[int, dict[StepIdentity, StepRecord]] = field(default_factory=dict)

    def add_step(self, record: StepRecord) -> None:
        self.steps[record.identity] = record
        if record.parent != TOP:
            self.inner.setdefault(record.parent, {})[record.identity] = record
        if record.kept_from is not None:
            self.first_generation = min(self.first_generation or record.kept_from, record.kept_from)
        self.last_seq = max(self.last_seq, record.seq)
        self.last_delivery = max(self.last_delivery, record.delivery or 0)

    def add_attempts(self, attempts: Iterable[AttemptRecord]) -> None:
        """Count the attempts of unfinished steps. One that is still `running` was left behind by a worker that died."""
        by_step: dict[int, list[AttemptRecord]] = defaultdict(list)
        for attempt in attempts:
            if attempt.phase == AttemptPhase.ROLLBACK:
                self.undoing.setdefault(attempt.step_seq, []).append(attempt)
            else:
                by_step[attempt.step_seq].append(attempt)
        for record in self.steps.values():
            before = record.retried_after if record.seq in by_step else 0
            for attempt in by_step.get(record.seq, ()):
                record.attempts = max(record.attempts, attempt.number)
                if attempt.number > before:
                    record.spent += attempt.status in SPENT
                    record.crashes += attempt.status == AttemptStatus.LOST and attempt.quarantined
                if attempt.status == AttemptStatus.RUNNING:
                    self.running[record.seq] = attempt
                elif _may_wait_for_an_answer(record) and attempt.status in SPENT:
                    self.unasked[record.seq] = attempt

    def exhausted(self) -> dict[int, StepRecord]:
        """Return the steps, by number, that have used up their attempts and for which nobody has decided yet."""
        return {record.seq: record for record in self.steps.values() if record.is_exhausted}

    def beneath(self, seq: int) -> Iterator[StepRecord]:
        """Yield the inner steps of a step, and theirs, the outer ones first."""
        waiting = [seq]
        while waiting:
            for record in self.inner.get(waiting.pop(), {}).values():
                yield record
                waiting.append(record.seq)

    def nested(self, seq: int) -> int:
        """Count the steps that the body of a step, or the bodies of its items, called, and those that these called."""
        return sum(record.is_nested for record in self.beneath(seq))

    def forget_inner(self, record: StepRecord) -> None:
        """Forget a step that was called but has not begun."""
        del self.steps[record.identity]
        del self.inner[record.parent][record.identity]

    def mark_nested(self) -> int:
        """Mark the steps that bodies called, and count them."""
        if self.inner:
            for record in self.steps.values():
                if record.kind == StepKind.DO:
                    for one in self.inner.get(record.seq, {}).values():
                        one.is_nested = True
        return sum(one.is_nested for inner in self.inner.values() for one in inner.values())


def _may_wait_for_an_answer(record: StepRecord) -> bool:
    """Return whether the delay function of a step may have to be asked when its next attempt is due."""
    return record.status == StepStatus.WAITING and record.wake_us is None and not record.is_exhausted
