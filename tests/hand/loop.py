"""An event loop that does nothing by itself: the test decides which statement of a worker goes on, and when."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from asyncio import events
from collections import deque
from collections.abc import Callable
from typing import Any

from tests.hand.clock import SimulatedClock


class HandLoop(asyncio.AbstractEventLoop):
    """Runs what is ready in `drain`; a task that waits at a boundary goes on when `step` is called."""

    def __init__(self, clock: SimulatedClock) -> None:
        self._clock = clock
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[int, int, asyncio.Handle]] = []
        self._count = itertools.count()
        self._boundaries: list[asyncio.Future[None]] = []
        self._tasks: list[asyncio.Task[Any]] = []

    # Driving

    @property
    def waiting(self) -> int:
        """Count the tasks that wait at a boundary."""
        return len(self._boundaries)

    def step(self, choice: int = 0) -> None:
        """Let one of the tasks that wait at a boundary, the first one by default, go on to its next one."""
        self._boundaries.pop(choice % len(self._boundaries)).set_result(None)
        self.drain()

    def drain(self) -> None:
        """Run all that is ready, timers that are due included. What a task raises is raised here."""
        outer = events._get_running_loop()
        events._set_running_loop(self)
        try:
            while self._ready or self._wake_timers():
                handle = self._ready.popleft()
                if not handle._cancelled:
                    handle._context.run(handle._callback, *handle._args)  # type: ignore[attr-defined]
        finally:
            events._set_running_loop(outer)
        for task in [one for one in self._tasks if one.done()]:
            self._tasks.remove(task)
            if not task.cancelled():
                task.result()

    def run(self, callback: Callable[[], object]) -> None:
        self.call_soon(callback)
        self.drain()

    def die(self) -> None:
        """Forget everything: the process of this loop is gone."""
        self._ready.clear()
        self._timers.clear()
        self._boundaries.clear()
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            with contextlib.suppress(BaseException):
                task.get_coro().close()  # type: ignore[union-attr]
        self._tasks.clear()
        self._ready.clear()

    async def boundary(self) -> None:
        """Wait until the test lets this task go on."""
        future: asyncio.Future[None] = self.create_future()
        self._boundaries.append(future)
        await future

    def _wake_timers(self) -> bool:
        while self._timers and self._timers[0][0] <= self._clock.us:
            handle = heapq.heappop(self._timers)[2]
            if not handle._cancelled:  # type: ignore[attr-defined]
                self._ready.append(handle)
        return bool(self._ready)

    # What code asks of a loop

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:
        handle = asyncio.Handle(callback, args, self, context)
        heapq.heappush(self._timers, (self._clock.us + round(delay * 1_000_000), next(self._count), handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **kwargs: Any) -> Any:
        task = asyncio.Task(coro, loop=self, **kwargs)
        self._tasks.append(task)
        return task

    def set_default_executor(self, executor: Any) -> None:
        """No body of a test asks for it."""

    def set_task_factory(self, factory: Any) -> None:
        """Tasks are plain ones here: bodies are the test's, and call no steps."""

    def time(self) -> float:
        return self._clock.us / 1_000_000

    def get_debug(self) -> bool:
        return False

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """What tasks raise is raised by `drain`; the rest is asyncio's talk about tasks of dead processes."""
