"""A host of cycles without a database: the test lets bodies end, time pass, and flushes be answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.declare.registry import Workflow
from engine.replay.attempts.bodies import DoOperation
from engine.replay.cycle import Cycle
from engine.replay.host import Claimed
from engine.replay.records.history import AttemptRecord, EventRecord, History, Page
from engine.replay.records.writes import Writes
from engine.values.serialization import Stored

NOW_US = 1_800_000_000_000_000


@dataclass
class HandHost:
    """A worker that does nothing by itself: the test lets bodies end, time pass, and flushes be answered."""

    name: str = "hand"
    time_us: int = NOW_US
    bodies: dict[str, tuple[DoOperation, AttemptRecord]] = field(default_factory=dict)
    asked_events: int = 0
    asked_relations: int = 0
    asked_wake_ups: int = 0
    has_left: bool = False
    is_committing: bool = False  # an atomic body

    def now_us(self) -> int:
        return self.time_us

    def due_us(self) -> int:
        return self.time_us

    def poke(self, cycle: Cycle) -> None:
        """The test calls `advance` itself."""

    def flush(self, cycle: Cycle) -> None:
        """The test takes `cycle.writes` itself."""

    def call_at(self, cycle: Cycle, when_us: int) -> None:
        """The test moves the time itself."""

    def run_body(self, cycle: Cycle, operation: DoOperation, attempt: AttemptRecord) -> None:
        self.bodies[operation.record.name] = (operation, attempt)

    def cancel_body(self, cycle: Cycle, attempt: AttemptRecord) -> bool:
        """Bodies are what the test says."""
        return not self.is_committing

    def ask_delay(self, *args: Any) -> None:
        raise AssertionError("no delay function here")

    def read_events(self, cycle: Cycle) -> None:
        self.asked_events += 1

    def read_relations(self, cycle: Cycle) -> None:
        self.asked_relations += 1

    def read_wake_ups(self, cycle: Cycle) -> None:
        self.asked_wake_ups += 1

    def drive(self, cycle: Cycle) -> None:
        cycle.loop.drain()

    def shut(self, cycle: Cycle) -> None:
        cycle.loop.shut()

    def left(self, cycle: Cycle) -> None:
        self.has_left = True

    def give_up(self, cycle: Cycle, reason: str) -> None:
        """Nothing is refused twice."""

    def holds_only(self, cycle: Cycle) -> bool:
        return False

    def cleared(self, cycle: Cycle) -> None:
        """Nothing is quarantined."""

    def rested(self, cycle: Cycle) -> None:
        """Nothing is handed to others."""


def cycle_of(declared: Workflow[Any, Any], host: HandHost, *, is_cut: bool = False) -> Cycle:
    """Begin a cycle; `is_cut`: there are more events than were read with its history."""
    claimed = Claimed(1, declared.name, "one", 1, 1, 0, "null", NOW_US, None, False)
    cycle = Cycle(host, declared, claimed, History(events=Page([], NOW_US, is_cut)))
    cycle.begin()
    cycle.advance()
    return cycle


def take(cycle: Cycle) -> Writes:
    """Put what is gathered on its way to the database."""
    taken, cycle.writes = cycle.writes, Writes()
    return taken


def answer(cycle: Cycle, writes: Writes, *, signals: int = 0) -> None:
    """The database has committed these writes; nobody paused."""
    for record in writes.steps.values():
        record.is_recorded = True
    for then in writes.then:
        then(False)
    cycle.written("running", signals, leave=writes.leave, has_left=writes.leave is not None)
    cycle.advance()


def end_body(cycle: Cycle, host: HandHost, name: str) -> None:
    operation, attempt = host.bodies.pop(name)
    operation.settle(attempt, stored=Stored("null", None))
    cycle.advance()


def event(key: int, type: str) -> EventRecord:
    return EventRecord(key, type, f'"{key}"', "", NOW_US)
