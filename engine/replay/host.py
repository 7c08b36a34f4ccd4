"""What a cycle gets from its worker, its phases, and what it asks of that worker."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol, TypeVar

from engine.values.records import AttemptRecord

C_contra = TypeVar("C_contra", contravariant=True)  # a cycle
O_contra = TypeVar("O_contra", contravariant=True)  # an operation with attempts


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a cycle needs of the row of its instance, as it was claimed."""

    key: int
    workflow: str
    id: str
    generation: int
    fence: int
    signals: int
    params: str
    started_us: int
    deadline_us: int | None
    quarantined: bool
    due_us: int = 0  # when it is due, which may be just ahead
    log_lines: int = 0  # of the handler's log
    code: str = ""  # fingerprint of the handler that it started under, or that was accepted since
    ends_as: str = ""  # after its rollbacks, if these have begun; then with `error`, JSON text
    error: str | None = None
    depth: int = 0  # number of its ancestors, each started by the one before
    keys_from: int | None = None  # the generation whose idempotency keys it uses, if not its own


class Phase(Enum):
    DRIVING = auto()
    QUIESCING = auto()  # pausing or draining: bodies finish, the handler is not driven
    ENDING = auto()  # the handler has ended: what is still open is being cancelled
    ROLLING_BACK = auto()  # rollbacks run one after another; the handler is gone
    LEAVING = auto()  # the last write is under way
    LEFT = auto()


class Host(Protocol[C_contra, O_contra]):
    """What a cycle asks of the worker that holds it."""

    name: str

    def now_us(self) -> int:
        """Return the database's time, never too early: for deadlines and records."""

    def due_us(self) -> int:
        """Return the database's time, never too late: to find what is due."""

    def poke(self, cycle: C_contra) -> None:
        """Call `cycle.advance()` soon, once."""

    def flush(self, cycle: C_contra) -> None:
        """Write `cycle.writes` soon, and call `cycle.written()`."""

    def call_at(self, cycle: C_contra, when_us: int) -> None:
        """Poke the cycle at this time; this replaces an earlier request."""

    def run_body(self, cycle: C_contra, operation: O_contra, attempt: AttemptRecord) -> None:
        """Run the body and call `operation.settle`, or `take_in` if it recorded its success itself."""

    def cancel_body(self, cycle: C_contra, attempt: AttemptRecord) -> bool:
        """Cancel an async body; set `ctx.cancelled` of a sync one.

        Return False if it is too late, because an atomic body is being committed; its outcome is then reported.
        """

    def ask_delay(
        self, cycle: C_contra, operation: O_contra, attempt: AttemptRecord, error: BaseException
    ) -> None:
        """Call the delay function and then `operation.back_off`, or `give_up`."""

    def read_events(self, cycle: C_contra) -> None:
        """Read what `cycle.events.question` asks for, then call `cycle.on_events`."""

    def read_relations(self, cycle: C_contra) -> None:
        """Read what `cycle.relations.question` asks for, then call `cycle.on_relations`."""

    def read_wake_ups(self, cycle: C_contra) -> None:
        """Read what `cycle.wake_ups.question` asks for, then call `cycle.on_wake_ups`."""

    def drive(self, cycle: C_contra) -> None:
        """Call `cycle.loop.drain()`, interrupting a handler that does not return."""

    def shut(self, cycle: C_contra) -> None:
        """Call `cycle.loop.shut()`, interrupting a `finally:` that does not return."""

    def left(self, cycle: C_contra) -> None:
        """Forget the cycle."""

    def give_up(self, cycle: C_contra, reason: str) -> None:
        """Pause the instance with this reason (JSON). Its cycle leaves without a write."""

    def holds_only(self, cycle: C_contra) -> bool:
        """Tell whether this worker holds no other instance."""

    def cleared(self, cycle: C_contra) -> None:
        """Note that an instance has left quarantine."""

    def rested(self, cycle: C_contra) -> None:
        """Note that no body of the instance runs any more."""
