"""A running body in a worker."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engine.replay.nesting.body import Body
from engine.values.signatures import with_context
from engine.values.states import AttemptPhase
from engine.worker.bodies import atomic
from engine.worker.bodies.orm_calls import BodyCalls
from engine.worker.bodies.threads import Job


@dataclass(slots=True, eq=False)
class Running(Body):
    """A running body, and what this worker needs to stop it."""

    fn: Callable[..., Any] = field(kw_only=True)
    transaction: atomic.Transaction | None = None
    task: asyncio.Task[None] | None = None
    job: Job | None = None
    calls: BodyCalls | None = None
    timer: asyncio.TimerHandle | None = None
    started_at: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        what = "rollback of step" if self.attempt.phase == AttemptPhase.ROLLBACK else "step"
        of = self.cycle.claimed
        return f'{what} "{self.operation.label}", attempt {self.attempt.number}, of instance {of.workflow}/{of.id}'

    @property
    def is_awaited(self) -> bool:
        """Return whether its attempt still runs: a body may continue after a timeout, for example."""
        return self.operation.attempt is self.attempt

    def called_with(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments for the function."""
        operation = self.operation
        if self.attempt.phase == AttemptPhase.ROLLBACK:
            return (self.context,), {}
        return with_context(self.fn, operation.args, operation.kwargs, self.context)


def is_async(fn: Any) -> bool:
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004
