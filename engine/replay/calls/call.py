"""What a durable call returns: an awaitable whose outcome a cycle delivers, and the phase that its step is in."""

from __future__ import annotations

import asyncio
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
        """Take in the outcome of an inner step, which stands in its record and is not written yet."""


class Call(Unawaited, asyncio.Future[Any]):
    """One durable call, from its start to the delivery of its outcome.

    It is a future, so `gather` and `wait` take it as it is; for `create_task` and `TaskGroup.create_task` the handler's
    loop makes a coroutine of it. Cancelling it ends the step, unless another call of its identity still waits for
    it: its body is cancelled and it is recorded so.
    """

    waiting_for: ClassVar[WaitingFor]  # when it is what a parked instance waits for
    phase: StepPhase = phases.CALLED  # changed by `Steps` only, which finds steps by it
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

    def begin(self) -> None:
        """Start, or go on from what is recorded."""
        raise NotImplementedError

    def start(self) -> None:
        """Make the attempt that was deferred."""
        raise NotImplementedError

    def fire(self) -> None:
        """The time has come that it waited for."""
        raise NotImplementedError

    def arm(self, when_us: int) -> None:
        """Let `fire` be called at that time."""
        raise NotImplementedError

    def rearm(self) -> None:
        """The clock was set: set an alarm of its own anew. The others are the cycle's."""

    def withdraw(self) -> None:
        """Its caller has cancelled it."""
        raise NotImplementedError

    def release(self) -> None:
        """It ends without an outcome, and its caller has not cancelled it."""

    def closed(self) -> None:
        """It is not open any more: leave what finds it while it waits."""

    def recorded_error(self) -> Exception:
        """Return what the handler sees of a failure: the same live and on every replay."""
        return outcomes.recorded_error(self.record)

    def inner(self) -> Iterable[StepRecord]:
        """Return the steps that belong to it: where it is cancelled, they are."""
        return ()

    def call_of(self, record: StepRecord) -> Call | None:
        """Return the call of a step that belongs to it, also where that is over and only recorded: for its rollback."""
        return None

    # What they have in common

    @property
    def path(self) -> Path:
        """The identities from the top to this step."""
        above = () if self.owner is None else self.owner.path
        return (*above, self.record.identity)

    @property
    def label(self) -> str:
        """Its name in the messages of errors."""
        return self.record.name

    @property
    def is_wanted(self) -> bool:
        """Tell whether any of the calls that share the step still waits for its outcome."""
        return not self.done() or any(not one.done() for one in self.followers)

    @property
    def is_given_up(self) -> bool:
        """Tell whether all of them were cancelled before there was an outcome."""
        return self.cancelled() and not self.is_wanted and self.record.delivery is None

    def cancel(self, msg: Any = None) -> bool:
        cancelled = super().cancel(msg)
        if cancelled:
            self.withdraw()
        return cancelled

    def cancel_with(self, task: asyncio.Task[Any]) -> None:
        """End the step with its task, also with one that was cancelled before it began to wait."""
        if task.cancelled():
            self.cancel()

    async def awaited(self) -> Any:
        """Return a coroutine in place of this future, for a task."""
        return await self


class InertCall:
    """What a call returns while the handler's coroutines are being closed: it has no identity and never completes."""

    def __await__(self) -> Generator[Any, None, Any]:
        while True:
            yield

    async def awaited(self) -> Any:
        return await self


INERT: Coroutine[Any, Any, Any] = InertCall()  # type: ignore[assignment]
