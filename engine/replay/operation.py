"""What a durable call returns: an awaitable whose outcome the cycle delivers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any

from engine.replay.history import StepRecord
from engine.serialization import Codec, Stored

if TYPE_CHECKING:
    from engine.replay.cycle import Cycle
    from engine.retry import StepOptions


class Operation(asyncio.Future[Any]):
    """One durable call of a handler, from its call to the delivery of its outcome.

    It is a future, so `gather` and `wait` take it as it is; for `create_task` and `TaskGroup.create_task` the handler's
    loop makes a coroutine of it. Cancelling it ends the step, unless another call of its identity still waits for
    it: its body is cancelled and it is recorded so.
    """

    def __init__(self, cycle: Cycle, record: StepRecord, decode: Callable[[str], Any]) -> None:
        super().__init__(loop=cycle.loop)
        self.cycle = cycle
        self.record = record
        self.decode = decode
        self.live: Stored | None = None  # the value of an outcome that came in this cycle
        self.followers: list[Operation] = []  # later calls of the same identity

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
            self.cycle.withdraw(self)
        return cancelled

    def cancel_with(self, task: asyncio.Task[Any]) -> None:
        """End the step with its task, also with one that was cancelled before it began to wait."""
        if task.cancelled():
            self.cancel()

    async def awaited(self) -> Any:
        """Return a coroutine in place of this future, for a task."""
        return await self


class DoOperation(Operation):
    """A call of `step.do`: what to run, and how."""

    def __init__(
        self,
        cycle: Cycle,
        record: StepRecord,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: StepOptions,
        codec: Codec,
    ) -> None:
        super().__init__(cycle, record, codec.decode)
        self.fn = fn
        self.args = args
        self.kwargs = kwargs
        self.options = options
        self.codec = codec


class SleepOperation(Operation):
    """A call of `step.sleep` (`duration_us`) or `step.sleep_until` (`until_us`)."""

    def __init__(
        self, cycle: Cycle, record: StepRecord, duration_us: int | None, until_us: int | None
    ) -> None:
        super().__init__(cycle, record, _nothing)
        self.duration_us = duration_us
        self.until_us = until_us


class WaitOperation(Operation):
    """A call of `step.wait_for_event` or `step.listen`."""

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


class ProgressOperation(Operation):
    """A call of `step.progress`: a milestone that is complete as soon as it is recorded."""

    def __init__(self, cycle: Cycle, record: StepRecord, output: str) -> None:
        super().__init__(cycle, record, _nothing)
        self.output = output


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
