"""Nested steps: what an async body calls by `step.do` and `step.run`.

A nested step belongs to the step whose body calls it: its name counts there, its timeout includes it, and its
outcome goes to that body, once it is committed: what the body does next must not come before the record. It starts at
once, also while a pause is asked for, because the body around it is to come to its end. An attempt that ends without
success leaves it as it stands, and the next attempt goes on with it; what is finished returns its recorded outcome.
"""

from __future__ import annotations

import asyncio
import functools
import weakref
from collections.abc import Callable, Coroutine, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from random import Random
from typing import Any, cast
from uuid import UUID

from engine.declare.context import StepContext
from engine.replay.attempts import functions
from engine.replay.attempts.attempt import AttemptedOperation
from engine.replay.attempts.bodies import DoOperation
from engine.replay.calls import phases
from engine.replay.calls.call import Call, Path
from engine.replay.records.history import AttemptRecord, StepRecord
from engine.replay.state import CycleState
from engine.values.errors import LimitError, ParkingError, StepArgumentsError, StepConfigError
from engine.values.identity import Counter, StepIdentity, check_step_name, seed, seeded_random, seeded_uuid4
from engine.values.retry import StepOptions
from engine.values.serialization import Codec
from engine.values.states import AttemptPhase, StepKind, StepStatus

MAX_DEPTH = 20
MICROSECONDS = 1_000_000

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


@dataclass(slots=True, eq=False, weakref_slot=True)
class Body:
    """A body on its way: what runs for one attempt."""

    cycle: CycleState
    operation: AttemptedOperation
    attempt: AttemptRecord
    context: StepContext
    loop: asyncio.AbstractEventLoop | None = None  # that an async one runs on
    nest: Nest | None = None  # made when it is first needed

    @property
    def is_open(self) -> bool:
        """Tell whether its attempt counts: it is not over, and is not being cancelled."""
        cycle = self.cycle
        is_running = self.operation.attempt is self.attempt
        return is_running and not self.context.is_cancelled and (cycle.is_driving or cycle.is_quiescing)


class Current:
    """The body in whose context code runs.

    Contexts outlive their body: each timer that it has set, also one that is cancelled, keeps its own until its time.
    So the context only refers to the body, which would keep its cycle, with all its history, in memory.
    """

    def __init__(self) -> None:
        self._body: ContextVar[weakref.ref[Body] | None] = ContextVar("body", default=None)

    def get(self) -> Body | None:
        reference = self._body.get()
        return None if reference is None else reference()

    @property
    def is_gone(self) -> bool:
        """Tell whether the body is over and forgotten: what runs is a task that it has left behind."""
        reference = self._body.get()
        return reference is not None and reference() is None

    def set(self, body: Body | None) -> None:
        self._body.set(None if body is None else weakref.ref(body))


current = Current()


class Nest:
    """The steps that one body has called, and its random values."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.counter = Counter()
        self.entered: dict[StepIdentity, NestedOperation] = {}
        self.uuids = 0
        self._open: set[NestedOperation] = set()
        self._all_ended: asyncio.Event = asyncio.Event()

    @property
    def path(self) -> Path:
        return self.body.operation.path

    # The same on every attempt; the handler's own values go on as if there were no body.

    @functools.cached_property
    def seed(self) -> str:
        return seed(*self._origin)

    @functools.cached_property
    def random(self) -> Random:
        return seeded_random(*self._origin)

    @property
    def _origin(self) -> tuple[str, str, int, Path]:
        facts = self.body.cycle.claimed
        return facts.workflow, facts.id, facts.generation, self.path

    def record_of(self, name: str, *, once: bool) -> StepRecord:
        """Fix the identity of a call. One that a body has cancelled is no outcome: the next of that name is."""
        cycle = self.body.cycle
        for identity in self._identities(name, once=once or cycle.identities.is_by_name):
            record = cycle.history.steps.get(identity)
            if record is None:
                cycle.step_count.add_nested()
                record = StepRecord(0, *identity, is_recorded=False, is_nested=True)
                cycle.history.add_step(record)
            if record.status != StepStatus.CANCELLED:
                return record
        raise AssertionError("there is always a next identity")

    def check_arguments(
        self, record: StepRecord, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Refuse a call that the function does not take: there is no such step then, unless it has begun before."""
        try:
            functions.check_arguments(record.name, fn, args, kwargs)
        except StepArgumentsError:
            if not record.seq:
                self.body.cycle.history.forget_inner(record)
                self.body.cycle.step_count.forget_nested()
            raise

    def _identities(self, name: str, *, once: bool) -> Iterator[StepIdentity]:
        take = functools.partial(self.counter.take, StepKind.DO, name, parent=self.body.operation.record.seq)
        identity = take(once=once)
        while True:
            yield identity
            identity = identity._replace(count=identity.count + 1) if once else take()

    def enter(self, operation: NestedOperation) -> NestedOperation:
        """Start a step, go on with it, or give it its recorded outcome."""
        record = operation.record
        earlier = self.entered.get(record.identity)
        if earlier is not None and earlier.is_wanted:
            earlier.followers.append(operation)
            return operation
        self.entered[record.identity] = operation
        self._open.add(operation)
        self._all_ended.clear()
        if record.is_final:
            operation.get_loop().call_soon(self._deliver, operation)
        else:
            self.body.cycle.start(operation)
        return operation

    def settled(self, operation: Call) -> None:
        mine = cast(NestedOperation, operation)
        self.body.cycle.writes.committed.append(functools.partial(self._deliver, mine))

    def _deliver(self, operation: NestedOperation) -> None:
        self.body.cycle.deliver(operation)
        for one in (operation, *operation.followers):
            if one.done() and not one.cancelled():
                one.exception()  # asyncio complains of one that nobody asks for: it is recorded
        self.forget(operation)

    def forget(self, operation: NestedOperation) -> None:
        self._open.discard(operation)
        if not self._open:
            self._all_ended.set()

    async def rest(self) -> None:
        """Wait for the steps that nobody awaited."""
        while self._open and self.body.is_open:
            await self._all_ended.wait()


class NestedOperation(DoOperation):
    """A call by a body. It is a future of the worker's loop; its owner is the body's nest."""

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
        """Wait here, and not with the handler's timers, which stand still while the instance is to pause."""
        if self._alarm is not None:
            self._alarm.cancel()
        seconds = max(0.0, (when_us - self.cycle.host.due_us()) / MICROSECONDS)
        self._alarm = self.get_loop().call_later(seconds, _ring, weakref.ref(self), when_us)

    def rearm(self) -> None:
        if self._alarm is not None and self.record.wake_us is not None:
            self.arm(self.record.wake_us)

    def withdraw(self) -> None:
        if self.owner.body.is_open:  # else the body is cancelled with all that it waits for
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


def do(
    cycle: CycleState,
    name: str,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: StepOptions,
    codec: Codec | None,
) -> Coroutine[Any, Any, Any]:
    """Run a step for the body that calls this. Raises ParkingError where there is none that can."""
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
    """Write a line of the body that calls this; what has outlived its cycle says nothing."""
    body = current.get()
    if body is not None and body.cycle is cycle:
        body.context.log.say(level, message, fields)


def uuid4(cycle: CycleState) -> UUID:
    nest = _nest(_body(cycle, "uuid4"))
    nest.uuids += 1
    return seeded_uuid4(nest.seed, nest.uuids)


def random(cycle: CycleState) -> Random:
    return _nest(_body(cycle, "random")).random


def make_task(loop: asyncio.AbstractEventLoop, coro: Any, **kwargs: Any) -> asyncio.Task[Any]:
    """Make tasks of nested steps, too: the task factory of a worker's loop."""
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
    """The attempt is over: let its body unwind. Not at once, or one that tries again and again would never yield."""
    never: asyncio.Future[Any] = loop.create_future()
    loop.call_soon(never.cancel)
    return never  # type: ignore[return-value]
