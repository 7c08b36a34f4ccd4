"""What a cycle is given, the phases it goes through, and what it asks of the worker that holds it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

from engine.replay.history import AttemptRecord

if TYPE_CHECKING:
    from engine.replay.cycle import Cycle
    from engine.replay.operation import DoOperation


@dataclass(frozen=True, slots=True)
class Claimed:
    """An instance as it was claimed: what its cycle needs of the row."""

    key: int
    workflow: str
    id: str
    generation: int
    fence: int
    signals: int
    params: str
    started_us: int
    deadline_us: int | None
    isolated: bool
    due_us: int = 0  # when it was due, which may be a moment ahead
    log_lines: int = 0  # of the handler's log
    code: str = ""  # the fingerprint of the handler that it started under, or that was accepted since
    ends_as: str = ""  # after its rollbacks, which have begun; then also `error`, JSON text
    error: str | None = None
    depth: int = 0  # how many instances stand above it, each started by the one before


class Phase(Enum):
    DRIVING = auto()
    FREEZING = auto()  # pausing or draining: bodies finish, the handler is not driven on
    ENDING = auto()  # the handler has ended: what is still open is being cancelled
    ROLLING_BACK = auto()  # one rollback after the other; the handler is gone
    LEAVING = auto()  # the last write is on its way
    LEFT = auto()


class Host(Protocol):
    """What a cycle asks of the worker that holds it."""

    name: str

    def now_us(self) -> int:
        """Return the database's time, not earlier than it is: for deadlines and records."""

    def due_us(self) -> int:
        """Return the database's time, not later than it is: to tell what is due."""

    def poke(self, cycle: Cycle) -> None:
        """Call `cycle.advance()` soon, once."""

    def flush(self, cycle: Cycle) -> None:
        """Write `cycle.writes` soon, and call `cycle.written()`."""

    def call_at(self, cycle: Cycle, when_us: int) -> None:
        """Poke the cycle at this time; replaces what was asked before."""

    def run_body(self, cycle: Cycle, operation: DoOperation, attempt: AttemptRecord) -> None:
        """Run the body and call `attempts.settle`, or `attempts.take_in` if it recorded its success by itself."""

    def cancel_body(self, cycle: Cycle, attempt: AttemptRecord) -> bool:
        """Cancel an async body; set `ctx.cancelled` of a sync one.

        False if it is too late, because an atomic body is being committed: what came of it is told.
        """

    def ask_delay(
        self, cycle: Cycle, operation: DoOperation, attempt: AttemptRecord, error: BaseException
    ) -> None:
        """Call the delay function and then `attempts.back_off`."""

    def read_events(self, cycle: Cycle) -> None:
        """Read what `cycle.events.question` asks for and call `cycle.on_events`."""

    def read_relations(self, cycle: Cycle) -> None:
        """Read what `cycle.relations.question` asks for and call `cycle.relations.answer`."""

    def drive(self, cycle: Cycle) -> None:
        """Call `cycle.loop.drain()`, interrupting a handler that does not return."""

    def shut(self, cycle: Cycle) -> None:
        """Call `cycle.loop.shut()`, interrupting a `finally:` that does not return."""

    def left(self, cycle: Cycle) -> None:
        """Forget the cycle."""

    def give_up(self, cycle: Cycle, reason: str) -> None:
        """Pause the instance, which this cycle leaves without a write, for this reason (JSON)."""

    def holds_only(self, cycle: Cycle) -> bool:
        """Tell whether this worker holds no other instance."""

    def acquitted(self, cycle: Cycle) -> None:
        """Take note that an instance need not run alone any more."""

    def rested(self, cycle: Cycle) -> None:
        """Take note that no body of the instance runs any more."""
