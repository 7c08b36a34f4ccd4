"""The host of cycles that only replay: nothing is written, no time comes, no body runs."""

from __future__ import annotations

from engine.replay.attempts.attempt import AttemptedOperation
from engine.replay.cycle import Cycle
from engine.replay.records.history import AttemptRecord
from engine.worker.bodies.slices import Slices

LONG_AGO_US = 0  # so no deadline has passed


class DryHost:
    """See `engine.replay.host.Host`. It drives and closes handlers, and ignores everything that they ask for."""

    name = "dry-run"

    def __init__(self, slices: Slices, now_us: int) -> None:
        self._slices = slices
        self._now_us = now_us

    def now_us(self) -> int:
        return self._now_us

    def due_us(self) -> int:
        return LONG_AGO_US

    def drive(self, cycle: Cycle) -> None:
        self._slices.drive(cycle)

    def shut(self, cycle: Cycle) -> None:
        self._slices.shut(cycle)

    def holds_only(self, cycle: Cycle) -> bool:
        return False

    def cancel_body(self, cycle: Cycle, attempt: AttemptRecord) -> bool:
        return True  # none runs

    # Attempts are prepared, never recorded; so no body begins, and no delay function is asked.

    def flush(self, cycle: Cycle) -> None: ...
    def run_body(self, cycle: Cycle, operation: AttemptedOperation, attempt: AttemptRecord) -> None: ...
    def ask_delay(
        self, cycle: Cycle, operation: AttemptedOperation, attempt: AttemptRecord, error: BaseException
    ) -> None: ...

    # Only what is recorded in the steps is replayed: not events that no step has consumed, nor other instances.

    def read_events(self, cycle: Cycle) -> None: ...
    def read_relations(self, cycle: Cycle) -> None: ...
    def read_wake_ups(self, cycle: Cycle) -> None: ...

    # It is advanced once, and leaves nothing.

    def poke(self, cycle: Cycle) -> None: ...
    def call_at(self, cycle: Cycle, when_us: int) -> None: ...
    def left(self, cycle: Cycle) -> None: ...
    def give_up(self, cycle: Cycle, reason: str) -> None: ...
    def cleared(self, cycle: Cycle) -> None: ...
    def rested(self, cycle: Cycle) -> None: ...
