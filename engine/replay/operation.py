"""What a durable call returns: an awaitable whose outcome the cycle delivers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from engine.errors import EventTimeoutError, InvalidValueError
from engine.identity import StepIdentity
from engine.replay import attempts, cancelling, outcomes, waits
from engine.replay.context import StepContext
from engine.replay.history import AttemptRecord, StepRecord
from engine.replay.host import Phase
from engine.replay.sensitive import output_masked
from engine.replay.unawaited import Unawaited
from engine.serialization import Codec, Stored
from engine.states import StepStatus, WaitingFor

if TYPE_CHECKING:
    from engine.replay.cycle import Cycle
    from engine.retry import StepOptions


Path = tuple[StepIdentity, ...]


class Owner(Protocol):
    """What an inner step belongs to: its outcome goes there, and not to the handler."""

    @property
    def path(self) -> Path:
        """The identities from the top to the owner."""

    def settled(self, operation: Operation) -> None:
        """Take in the outcome of an inner step, which stands in its record and is not written yet."""


class Operation(Unawaited, asyncio.Future[Any]):
    """One durable call of a handler, from its call to the delivery of its outcome; a class for each kind.

    It is a future, so `gather` and `wait` take it as it is; for `create_task` and `TaskGroup.create_task` the handler's
    loop makes a coroutine of it. Cancelling it ends the step, unless another call of its identity still waits for
    it: its body is cancelled and it is recorded so.
    """

    waiting_for: ClassVar[WaitingFor]  # when it is what a parked instance waits for

    def __init__(
        self,
        cycle: Cycle,
        record: StepRecord,
        decode: Callable[[str], Any],
        *,
        owner: Owner | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        # Only what the handler itself calls is called on every replay.
        self._number = next(cycle.loop.numbers.futures) if owner is None else object.__hash__(self)
        super().__init__(loop=loop or cycle.loop)
        self.cycle = cycle
        self.record = record
        self.decode = decode
        self.owner = owner
        self.live: Stored | None = None  # the value of an outcome that came in this cycle
        self.followers: list[Operation] = []  # later calls of the same identity

    def __hash__(self) -> int:
        return self._number

    def begin(self) -> None:
        """Start, or go on from what is recorded."""
        raise NotImplementedError

    def fire(self) -> None:
        """The time has come that it waited for."""
        raise NotImplementedError

    def rearm(self) -> None:
        """The clock was set: set an alarm of its own anew. The others are the cycle's."""

    def recorded_error(self) -> Exception:
        """Return what the handler sees of a failure: the same live and on every replay."""
        return outcomes.recorded_error(self.record)

    def inner(self) -> Iterable[StepRecord]:
        """Give the steps that belong to it: where it is cancelled, they are."""
        return ()

    def call_of(self, record: StepRecord) -> DoOperation | None:
        """Give the call of a step that belongs to it, also where that is over and only recorded: for its rollback."""
        return None

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

    def withdraw(self) -> None:
        """Whoever called it has cancelled it."""
        cancelling.withdraw(self.cycle, self)

    def let_go(self) -> None:
        """It ends without an outcome, and not by whoever called it."""

    def arm(self, when_us: int) -> None:
        """Let `fire` be called at that time."""
        self.cycle.timers.add(when_us, self.record.seq)

    def cancel_with(self, task: asyncio.Task[Any]) -> None:
        """End the step with its task, also with one that was cancelled before it began to wait."""
        if task.cancelled():
            self.cancel()

    async def awaited(self) -> Any:
        """Return a coroutine in place of this future, for a task."""
        return await self


class DoOperation(Operation):
    """A call of `step.do`: what to run, and how."""

    waiting_for = WaitingFor.RETRY

    def __init__(
        self,
        cycle: Cycle,
        record: StepRecord,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: StepOptions,
        codec: Codec,
        *,
        owner: Owner | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(cycle, record, codec.decode, owner=owner, loop=loop)
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.options = options
        self.codec = codec
        if options.rollback is not None:
            cycle.undoable.setdefault(record.identity, self)

    @property
    def is_called_off(self) -> bool:
        """Tell whether it shall not begin after all: asked when its first attempt is recorded."""
        return False

    def begin(self) -> None:
        attempts.begin(self.cycle, self)

    def fire(self) -> None:
        attempts.start(self.cycle, self)

    def inner(self) -> Iterable[StepRecord]:
        return self.cycle.history.beneath(self.record.seq)

    @property
    def may_run(self) -> bool:
        """Tell whether its body may begin in this cycle."""
        return self.cycle.phase is Phase.DRIVING

    @property
    def is_alone(self) -> bool:
        """Tell whether no body of the instance would run beside its own."""
        return not self.cycle.bodies

    # Called by whoever runs the body

    context: Callable[..., StepContext] = StepContext

    def store(self, value: Any) -> Stored:
        """Give what is recorded of a body's value."""
        what = f'output of step "{self.label}"'
        try:
            return self.codec.store(value, what=what)
        except InvalidValueError as problem:
            if not self.options.sensitive:
                raise
            raise output_masked(problem) from None

    def settle(
        self, attempt: AttemptRecord, *, stored: Stored | None = None, error: BaseException | None = None
    ) -> None:
        """Take in how the body ended."""
        attempts.settle(self.cycle, self, attempt, stored=stored, error=error)

    def take_in(self, attempt: AttemptRecord, stored: Stored, finished_us: int) -> None:
        """Take in that an atomic body has recorded its success itself."""
        attempts.take_in(self.cycle, self, attempt, stored, finished_us)

    def back_off(self, attempt: AttemptRecord, *, delay: timedelta | None = None) -> None:
        """Wait as long as the delay function said, or by the default where it did not answer."""
        attempts.back_off(self.cycle, self, attempt, delay)

    def give_up(self, attempt: AttemptRecord, error: BaseException | None = None) -> None:
        """Make no further attempt: the delay function said so, or failed with this error."""
        attempts.give_up(self.cycle, self, attempt, error)


class SleepOperation(Operation):
    """A call of `step.sleep` (`duration_us`) or `step.sleep_until` (`until_us`)."""

    waiting_for = WaitingFor.SLEEP

    def __init__(
        self, cycle: Cycle, record: StepRecord, duration_us: int | None, until_us: int | None
    ) -> None:
        super().__init__(cycle, record, _nothing)
        self.duration_us = duration_us
        self.until_us = until_us

    def begin(self) -> None:
        record = self.record
        if not record.is_recorded:
            until = self.until_us
            record.wake_us = until if until is not None else record.started_us + (self.duration_us or 0)
            record.wake_is_fixed = until is not None
            record.status = StepStatus.WAITING
        self.cycle.wait_until(self, record.wake_us, is_new=not record.is_recorded)

    def fire(self) -> None:
        self.cycle.conclude(self)


class WaitOperation(Operation):
    """A call of `step.wait_for_event` or `step.listen`."""

    waiting_for = WaitingFor.EVENT

    def __init__(
        self,
        cycle: Cycle,
        record: StepRecord,
        types: tuple[str, ...],
        timeout_us: int | None,
        decode: Callable[[str], Any],
    ) -> None:
        super().__init__(cycle, record, decode)
        self.types = types
        self.timeout_us = timeout_us

    def begin(self) -> None:
        waits.begin(self.cycle, self)

    def fire(self) -> None:
        waits.expire(self.cycle, self)

    def timed_out(self, types: str | Sequence[str], timeout: timedelta) -> EventTimeoutError:
        """Return the error that tells the handler of the timeout."""
        return EventTimeoutError(self.record.name, types, timeout)


class ProgressOperation(Operation):
    """A call of `step.progress`: a milestone that is complete as soon as it is recorded."""

    def __init__(self, cycle: Cycle, record: StepRecord, output: str) -> None:
        super().__init__(cycle, record, _nothing)
        self.output = output

    def begin(self) -> None:
        self.cycle.conclude(self, output=self.output)


def _nothing(text: str) -> None:
    return None


class InertOperation:
    """What a call returns while the handler's coroutines are being closed: it has no identity and never completes."""

    def __await__(self) -> Generator[Any, None, Any]:
        while True:
            yield

    async def awaited(self) -> Any:
        return await self


INERT: Coroutine[Any, Any, Any] = InertOperation()  # type: ignore[assignment]
