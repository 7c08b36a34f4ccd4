"""A body on its way, and how code that runs finds the body that it belongs to."""

from __future__ import annotations

import asyncio
import weakref
from contextvars import ContextVar
from dataclasses import dataclass

from engine.declare.context import StepContext
from engine.replay.attempts.attempt import AttemptedOperation
from engine.replay.nesting.nest import Nest
from engine.replay.state import CycleState
from engine.values.records import AttemptRecord


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
