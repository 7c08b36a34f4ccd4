"""What a durable call returns: an awaitable whose outcome a cycle delivers, and the phase that its step is in."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any, ClassVar, Protocol

from engine.replay.calls import phases
from engine.replay.calls.phases import StepPhase
from engine.replay.calls.unawaited import Unawaited
from engine.replay.records import outcomes
from engine.replay.records.history import AttemptRecord, StepRecord
from engine.values.identity import StepIdentity
from engine.values.serialization import Stored
from engine.values.states import WaitingFor

Path = tuple[StepIdentity, ...]


class Owner(Protocol):
    """What an inner step belongs to: its outcome goes there, and not to the handler."""

    @property
    def path(self) -> Path:
        """The identities from the top to the owner."""

    def settled(self, operation: Any) -> None:
        """Handle the outcome of an inner step, which is in its record and not written yet."""


class Call(Unawaited, asyncio.Future[Any]):
    """One durable call, from its start to the delivery of its outcome.

    It is a future, so `gather` and `wait` accept it. For `create_task` and `TaskGroup.create_task`, the handler's loop
    makes a coroutine of it. Cancelling the call cancels the step and its body, unless another call of the same identity
    still waits for it.
    """

    waiting_for: ClassVar[WaitingFor]  # what a parked instance waits for, if it waits for this
    phase: StepPhase = phases.CALLED  # changed by `Steps` only, which looks steps up by it
    attempt: AttemptRecord | None = None  # the one that is not over

    def __init__(
        self,
        record: StepRecord,
        decode: Callable[[str], Any],
        *,
        loop: asyncio.AbstractEventLoop,
        number: int | None = None,
        owner: Owner | None = None,
    ) -> None:
        self._number = object.__hash__(self) if number is None else number
        super().__init__(loop=loop)
        self.record = record
        self.decode = decode
        self.owner = owner
        self.live: Stored | None = None  # the value of an outcome that came in this cycle
        self.followers: list[Call] = []  # later calls of the same identity

    def __hash__(self) -> int:
        return self._number

    # What each kind does

    @abstractmethod
    def begin(self) -> None:
        """Start, or continue from what is recorded."""

    def start(self) -> None:
        """Make the attempt that was deferred; only calls with attempts are."""
        raise AssertionError(f"{type(self).__name__} has no attempts, so none can have been deferred")

    def fire(self) -> None:
        """Continue, because the time has come; only calls that wait for a time are armed."""
        raise AssertionError(f"{type(self).__name__} waits for no time, so none can have come")

    @abstractmethod
    def arm(self, when_us: int) -> None:
        """Let `fire` be called at that time."""

    def hasten(self, when_us: int) -> None:
        """Continue at this earlier time: a person has ended the sleep or the back-off."""
        self.arm(when_us)

    def rearm(self) -> None:
        """Set an alarm of its own again, because the clock was set; other alarms belong to the cycle."""

    @abstractmethod
    def withdraw(self) -> None:
        """Handle the cancellation by its caller."""

    def release(self) -> None:
        """End without an outcome, and without a cancellation by the caller."""

    def closed(self) -> None:
        """Remove it from what looks it up while it is open."""

    def recorded_error(self) -> Exception:
        """Return the error that the handler gets: the same live and on every replay."""
        return outcomes.recorded_error(self.record)

    def inner(self) -> Iterable[StepRecord]:
        """Return the steps that belong to it and are cancelled with it."""
        return ()

    def call_of(self, record: StepRecord) -> Call | None:
        """Return the call of a step that belongs to it, also of one that is over, for its rollback."""
        return None

    # What they have in common

    @property
    def path(self) -> Path:
        """The identities from the top to this step."""
        above = () if self.owner is None else self.owner.path
        return (*above, self.record.identity)

    @property
    def label(self) -> str:
        """The name in error messages."""
        return self.record.name

    @property
    def is_wanted(self) -> bool:
        """Tell whether a call that shares the step still waits for its outcome."""
        return not self.done() or any(not one.done() for one in self.followers)

    @property
    def is_given_up(self) -> bool:
        """Tell whether all calls that share the step were cancelled before it had an outcome."""
        return self.cancelled() and not self.is_wanted and self.record.delivery is None

    def cancel(self, msg: Any = None) -> bool:
        cancelled = super().cancel(msg)
        if cancelled:
            self.withdraw()
        return cancelled

    def cancel_with(self, task: asyncio.Task[Any]) -> None:
        """Cancel the step with its task, even if the task was cancelled before it began to wait."""
        if task.cancelled():
            self.cancel()

    async def awaited(self) -> Any:
        """Return a coroutine in place of this future, for a task."""
        return await self


class InertCall:
    """What a call returns while the handler's coroutines are closed. It has no identity and never completes."""

    def __await__(self) -> Generator[Any, None, Any]:
        while True:
            yield

    async def awaited(self) -> Any:
        return await self


INERT: Coroutine[Any, Any, Any] = InertCall()  # type: ignore[assignment]
