"""A step that a body has called: a future of the worker's loop."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import Any

from engine.replay.attempts.bodies import DoOperation
from engine.replay.calls import phases
from engine.replay.nesting.nest import Nest
from engine.replay.records.history import StepRecord
from engine.values.retry import StepOptions
from engine.values.serialization import Codec

MICROSECONDS = 1_000_000


class NestedOperation(DoOperation):
    """A call of `step.do` or `step.run` by a body. Its owner is the body's nest."""

    owner: Nest
    _alarm: asyncio.TimerHandle | None = None

    def __init__(
        self,
        nest: Nest,
        record: StepRecord,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: StepOptions,
        codec: Codec,
    ) -> None:
        body = nest.body
        super().__init__(body.cycle, record, fn, args, kwargs, options, codec, owner=nest, loop=body.loop)

    @property
    def may_run(self) -> bool:
        return self.owner.body.is_open

    @property
    def is_alone(self) -> bool:
        """The bodies around it only wait for it."""
        return self.cycle.steps.bodies.keys() <= {step.parent for step in self.path}

    def arm(self, when_us: int) -> None:
        """Set an alarm on the worker's loop: the handler's timers stop while a pause is requested."""
        if self._alarm is not None:
            self._alarm.cancel()
        seconds = max(0.0, (when_us - self.cycle.host.due_us()) / MICROSECONDS)
        self._alarm = self.get_loop().call_later(seconds, _ring, weakref.ref(self), when_us)

    def rearm(self) -> None:
        if self._alarm is not None and self.record.wake_us is not None:
            self.arm(self.record.wake_us)

    def withdraw(self) -> None:
        if self.owner.body.is_open:  # else the body is cancelled, and everything that it waits for
            record = self.record
            entered = self.owner.entered[record.identity]
            if not record.is_final and not entered.is_wanted:
                self.cycle.cancel_inner(self)
                self.cycle.cancel(record)
            self.owner.forget(entered)

    def release(self) -> None:
        for one in (self, *self.followers):
            asyncio.Future.cancel(one)
        self.owner.forget(self)


def make_task(loop: asyncio.AbstractEventLoop, coro: Any, **kwargs: Any) -> asyncio.Task[Any]:
    """Make a task, also of a nested step: the task factory of a worker's loop."""
    if not isinstance(coro, NestedOperation):
        return asyncio.Task(coro, loop=loop, **kwargs)
    task = asyncio.Task(coro.awaited(), loop=loop, **kwargs)
    task.add_done_callback(coro.cancel_with)
    return task


def _ring(waits: weakref.ref[NestedOperation], when_us: int) -> None:
    operation = waits()
    if operation is not None:
        operation._alarm = None
    if operation is None or operation.phase is not phases.BACKING_OFF:
        return
    if operation.may_run and when_us > operation.cycle.host.due_us():
        operation.arm(when_us)  # the two clocks differ
    elif operation.may_run:
        operation.fire()
