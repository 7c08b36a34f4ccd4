"""A body on its way, the steps that it has called, and how code that runs finds the body that it belongs to."""

from __future__ import annotations

import asyncio
import functools
import weakref
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from random import Random
from typing import Any

from engine.declare.context import StepContext
from engine.replay.attempts import functions
from engine.replay.attempts.attempt import AttemptedOperation
from engine.replay.calls.call import Call, Path
from engine.replay.records.history import StepRecord
from engine.replay.state import CycleState
from engine.values.errors import StepArgumentsError
from engine.values.identity import Counter, StepIdentity, seed, seeded_random
from engine.values.records import AttemptRecord
from engine.values.states import StepKind, StepStatus


@dataclass(slots=True, eq=False, weakref_slot=True)
class Body:
    """What runs for one attempt."""

    cycle: CycleState
    operation: AttemptedOperation
    attempt: AttemptRecord
    context: StepContext
    loop: asyncio.AbstractEventLoop | None = None  # of an async body
    nest: Nest | None = None  # made when it is first needed

    @property
    def is_open(self) -> bool:
        """Tell whether its attempt counts: it is not over, and is not being cancelled."""
        cycle = self.cycle
        is_running = self.operation.attempt is self.attempt
        return is_running and not self.context.is_cancelled and (cycle.is_driving or cycle.is_quiescing)


class Current:
    """The body in whose context code runs.

    Contexts outlive their body: every timer that it sets keeps one until it is due, even when it is cancelled. So the
    context holds a weak reference. Otherwise it would keep the body's cycle, with its whole history, in memory.
    """

    def __init__(self) -> None:
        self._body: ContextVar[weakref.ref[Body] | None] = ContextVar("body", default=None)

    def get(self) -> Body | None:
        reference = self._body.get()
        return None if reference is None else reference()

    @property
    def is_gone(self) -> bool:
        """Tell whether the body has ended and is forgotten: the running code is a task that it left behind."""
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
        self.entered: dict[StepIdentity, Call] = {}
        self.uuids = 0
        self._open: set[Call] = set()
        self._all_ended: asyncio.Event = asyncio.Event()

    @property
    def path(self) -> Path:
        return self.body.operation.path

    # The same on every attempt, and independent of the handler's own values.

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
        """Fix the identity of a call. A step that a body cancelled has no outcome: the next one of its name is used."""
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
        """Refuse arguments that the function does not accept. The step then does not exist, unless it began earlier."""
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

    def enter(self, operation: Call) -> Call:
        """Start a step, continue it, or deliver its recorded outcome."""
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
        self.body.cycle.writes.committed.append(functools.partial(self._deliver, operation))

    def _deliver(self, operation: Call) -> None:
        self.body.cycle.deliver(operation)
        for one in (operation, *operation.followers):
            if one.done() and not one.cancelled():
                one.exception()  # asyncio would log one that nobody retrieves; it is recorded
        self.forget(operation)

    def forget(self, operation: Call) -> None:
        self._open.discard(operation)
        if not self._open:
            self._all_ended.set()

    async def rest(self) -> None:
        """Wait for the steps that the body did not await."""
        while self._open and self.body.is_open:
            await self._all_ended.wait()
