"""What a cycle wants written by the journal's next flush: one write a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from engine.replay.records.history import AttemptRecord, LogLine, StepRecord
from engine.replay.records.other_instances import Awaited, NewChild
from engine.values.fingerprint import Failed
from engine.values.states import FINAL, InstanceStatus, StepStatus


@dataclass(frozen=True, slots=True)
class Leave:
    """How an instance leaves its worker.

    It becomes `waiting` only if no signal came in the meantime (`signals` is the number that the cycle has seen), and
    `paused` only if the pause is still requested, unless the engine pauses it and gives a `pause_reason`. `queued`
    releases it, and a final status ends it. With `running` it does not leave: its rollbacks begin, after which it
    `ends_as`.
    """

    status: str
    waiting_for: str = ""
    wake_us: int | None = None
    signals: int | None = None
    output: str | None = None
    error: str | None = None
    pause_reason: str | None = None
    unreached: tuple[int, ...] = ()
    rollback: str | None = None
    ends_as: str | None = None
    failed: Failed | None = None  # the group of the failure that it ends with
    fingerprint: str | None = None  # or else that of the latest failure; None leaves what the row has

    @property
    def is_end(self) -> bool:
        """Tell whether the handler has ended: what led to that is recorded even while a pause is requested."""
        return self.status in FINAL or self.status == InstanceStatus.RUNNING


@dataclass(slots=True)
class Writes:
    """What one flush writes for one cycle. A row that changes twice is written once, as it is at the flush."""

    steps: dict[int, StepRecord] = field(default_factory=dict)
    attempts: dict[tuple[int, int], AttemptRecord] = field(default_factory=dict)
    consumed: dict[int, int] = field(default_factory=dict)  # event key → seq of the wait
    logs: list[LogLine] = field(default_factory=list)
    leave: Leave | None = None
    # Steps that begin with this flush. While a pause is requested, the statement leaves out those that are open.
    starts: set[int] = field(default_factory=set)
    then: list[Callable[[bool], None]] = field(default_factory=list)  # with whether the starts were left out
    committed: list[Callable[[], None]] = field(default_factory=list)  # called whatever was left out
    children: dict[int, NewChild] = field(default_factory=dict)  # by the step that starts it
    waiters: dict[int, Awaited] = field(default_factory=dict)  # by the step that waits
    notify_pending: bool = False  # a step with a child was cancelled: the child has to be ended

    def __bool__(self) -> bool:
        return bool(self.steps or self.attempts or self.consumed or self.logs or self.leave or self.waiters)

    @property
    def concerns_others(self) -> bool:
        """Tell whether anything here concerns other instances; in most flushes nothing does."""
        return bool(self.children or self.waiters or self.notify_pending)

    def add_attempt(self, attempt: AttemptRecord) -> None:
        self.attempts[attempt.step_seq, attempt.number] = attempt

    def settle_starts(self) -> dict[int, StepRecord]:
        """Decide what a pause leaves out of this flush, just before it is sent. Return these steps, by number.

        If the start of a step is left out, so is its end in the same flush, but not a later one. A step with a delivery
        number is never left out. Its outcome has reached the handler, and what the handler did then is recorded: later
        outcomes have later numbers, and steps may have been cancelled. A replay without that outcome would differ.
        """
        starting = {
            seq: record
            for seq, record in self.steps.items()
            if seq in self.starts
            and record.delivery is None
            and not (record.is_recorded and record.status != StepStatus.RUNNING)
        }
        self.starts = set(starting)
        return starting

    def begun(self) -> Writes:
        """Return what a pause leaves out: the starts, and what belongs to them."""
        return Writes(
            steps={seq: record for seq, record in self.steps.items() if seq in self.starts},
            attempts={where: one for where, one in self.attempts.items() if where[0] in self.starts},
            children={seq: child for seq, child in self.children.items() if seq in self.starts},
            waiters={seq: which for seq, which in self.waiters.items() if seq in self.starts},
            starts=self.starts,
            then=self.then,
        )

    def absorb(self, later: Writes) -> None:
        """Add what the cycle wrote after these could not be flushed."""
        self.steps |= later.steps
        self.attempts |= later.attempts
        self.consumed |= later.consumed
        self.logs += later.logs
        self.leave = later.leave or self.leave
        self.starts |= later.starts
        self.then += later.then
        self.committed += later.committed
        self.children |= later.children
        self.waiters |= later.waiters
        self.notify_pending = self.notify_pending or later.notify_pending
