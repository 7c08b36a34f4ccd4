"""Nested steps: what an async body calls by `step.do` and `step.run`.

A nested step belongs to the step whose body calls it. Its name counts there, and the timeout of that step includes it.
Its outcome goes to that body once it is committed, because what the body does next must not come before the record. It
starts at once, also while a pause is requested: the body around it has to finish. If an attempt at the outer step
fails, its nested steps stay as they are. The next attempt continues those that are unfinished, and gets the recorded
outcome of the others.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any
from uuid import UUID

from engine.replay.attempts import functions
from engine.replay.attempts.bodies import DoOperation
from engine.replay.calls import phases
from engine.replay.nesting.body import Body, Nest, current
from engine.replay.records.history import StepRecord
from engine.replay.state import CycleState
from engine.values.errors import LimitError, ParkingError, StepConfigError
from engine.values.identity import check_step_name, seeded_uuid4
from engine.values.retry import StepOptions
from engine.values.serialization import Codec
from engine.values.states import AttemptPhase

MICROSECONDS = 1_000_000

MAX_DEPTH = 20

SYNC = "which is a plain function. Only an async body can run steps: make it `async def`, and await them."
THREAD = "but not by its own coroutine. Call it there, not from a thread or another event loop."
ROLLBACK = "where it is rolled back. No step can run there: do the work in the rollback's function itself."
MILESTONE = (
    "which cannot report progress. Call it from the workflow's handler, before or after that step; in the body, "
    "write a line into its log: ctx.log.info(message)."
)
ENDING = (
    "which cannot end the instance. Return or raise in the body, and call it from the workflow's handler."
)
STRAY = "in a thread of its own, or after its end. Call it from a handler or from the coroutine of a body."

# Of what only a handler may call, the calls that never park.
RULES = {"progress": MILESTONE, "fail": ENDING, "abort": ENDING, "complete": ENDING}


def do(
    cycle: CycleState,
    name: str,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: StepOptions,
    codec: Codec | None,
) -> Coroutine[Any, Any, Any]:
    """Run a step for the calling body. Raises ParkingError if no body calls, or one that cannot run steps."""
    loop = asyncio._get_running_loop()
    if current.is_gone and loop is not None:
        return _too_late(loop)
    body = _caller(cycle, name)
    _check(name, body, options)
    if not body.is_open:
        assert loop is not None  # the body's own
        return _too_late(loop)
    nest = _nest(body)
    record = nest.record_of(name, once=options.once)
    if not record.is_final:
        nest.check_arguments(record, fn, args, kwargs)
    options = functions.options_in_force(record, options)
    operation = NestedOperation(nest, record, fn, args, kwargs, options, codec or functions.codec_of(fn))
    return nest.enter(operation)  # type: ignore[return-value]  # a task is made of it by `make_task`


def refusal(operation: str, name: str = "") -> ParkingError:
    """Return the error for an operation that only a handler may call."""
    body = current.get()
    rule = RULES.get(operation, ParkingError.RULE)
    return ParkingError(operation, name, "another step" if body is None else body.operation.label, rule=rule)


def say(cycle: CycleState, level: str, message: str, fields: dict[str, Any]) -> None:
    """Write a line to the log of the calling body. Code that has outlived its cycle writes nothing."""
    body = current.get()
    if body is not None and body.cycle is cycle:
        body.context.log.say(level, message, fields)


def uuid4(cycle: CycleState) -> UUID:
    nest = _nest(_body(cycle, "uuid4"))
    nest.uuids += 1
    return seeded_uuid4(nest.seed, nest.uuids)


def random(cycle: CycleState) -> Random:
    return _nest(_body(cycle, "random")).random


def _body(cycle: CycleState, operation: str, name: str = "") -> Body:
    body = current.get()
    if body is None or body.cycle is not cycle:
        raise ParkingError(operation, name, "another step", rule=STRAY)
    return body


def _caller(cycle: CycleState, name: str) -> Body:
    body = _body(cycle, "do", name)
    if body.attempt.phase == AttemptPhase.ROLLBACK:
        raise ParkingError("do", name, body.operation.label, rule=ROLLBACK)
    if body.loop is None:
        raise ParkingError("do", name, body.operation.label, rule=SYNC)
    if asyncio._get_running_loop() is not body.loop:
        raise ParkingError("do", name, body.operation.label, rule=THREAD)
    return body


def _check(name: str, body: Body, options: StepOptions) -> None:
    check_step_name(name)
    what = f'Step "{name}" inside the body of step "{body.operation.label}"'
    if options.rollback is not None:
        rule = "A nested step has no rollback of its own. Give one to the step around it."
        raise StepConfigError("rollback", options.rollback, rule, what=what)
    if options.atomic:
        rule = "A nested step cannot be atomic. Call it from the workflow's handler."
        raise StepConfigError("atomic", options.atomic, rule, what=what)
    if len(body.operation.path) >= MAX_DEPTH:
        raise LimitError("depth of nested steps", len(body.operation.path) + 1, MAX_DEPTH)


def _nest(body: Body) -> Nest:
    if body.nest is None:
        body.nest = Nest(body)
    return body.nest


def _too_late(loop: asyncio.AbstractEventLoop) -> Coroutine[Any, Any, Any]:
    """Cancel a call of an attempt that is over, so that its body unwinds.

    Not at once: a body that tries again and again would never yield.
    """
    never: asyncio.Future[Any] = loop.create_future()
    loop.call_soon(never.cancel)
    return never  # type: ignore[return-value]


class NestedOperation(DoOperation):
    """A call of `step.do` or `step.run` by a body: a future of the worker's loop. Its owner is the body's nest."""

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
    def is_pausing(self) -> bool:
        """The body around it gets the error. Whether to pause is decided when the attempts at that step are used up."""
        return False

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
