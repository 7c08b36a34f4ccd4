"""The event loop of a test: an ordinary loop in the test's thread, whose timers take no time.

If all that is left is to wait for a timer, the clock jumps there. It does not jump while something outside is pending,
such as a socket or a thread: that takes real time.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import threading
import time
from asyncio import events
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

from engine.testing.clock import StandingClock

PATIENCE_SECONDS = 5.0  # with threads unknown to this loop
ITS_OWN = 1  # the pipe through which other threads wake the loop
MICROSECONDS = 1_000_000


class StandingLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: StandingClock) -> None:
        self._clock = clock
        self._outside = 0  # calls in threads
        self._threads = threading.active_count()
        self._limits: list[asyncio.TimerHandle] = []
        self._is_suspended = False
        super().__init__(_Selector(self, clock))
        self._clock_resolution = (
            1 / MICROSECONDS
        )  # otherwise a timer is never due: this clock stands still until it has fired

    # Work outside the loop

    def limits(self, timer: asyncio.TimerHandle) -> None:
        """Record a timer that gives up a body."""
        self._limits = [one for one in self._limits if not one.cancelled() and one.when() > self.time()]
        self._limits.append(timer)

    def may_be_answered(self, seconds: float) -> bool:
        """Return whether a thread started by a body may still answer before the body is given up."""
        then = self.time() + seconds
        is_given_up = any(not one.cancelled() and one.when() <= then for one in self._limits)
        return is_given_up and self.has_other_threads

    @property
    def has_other_threads(self) -> bool:
        return threading.active_count() > self._threads

    def time(self) -> float:
        return self._clock.us / MICROSECONDS

    @property
    def waits_for_threads(self) -> bool:
        return self._outside > 0

    # Any: the base class types them with TypeVarTuples, which is checked where they are called.
    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Any, *args: Any
    ) -> asyncio.Future[Any]:
        future = super().run_in_executor(executor, func, *args)
        if not isinstance(executor, Inline):
            self._outside += 1
            future.add_done_callback(self._came_back)
        return future

    def _came_back(self, _: asyncio.Future[Any]) -> None:
        self._outside -= 1

    # Sync code in the loop's thread

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Run sync code in this thread as if there were no loop: Django refuses ORM calls while one runs."""
        outer, events_before = self._is_suspended, events._get_running_loop()
        events._set_running_loop(None)
        self._is_suspended = True
        try:
            yield
        finally:
            self._is_suspended = outer
            events._set_running_loop(events_before)

    def is_running(self) -> bool:
        return super().is_running() and not self._is_suspended

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.Handle:
        if self._is_suspended and callback == self.create_task:
            # asgiref's async_to_sync, called by the code that this loop waits for, then makes its own loop.
            raise RuntimeError("the loop is suspended")
        return super().call_soon_threadsafe(callback, *args, context=context)


class Inline(Executor):
    """Runs in this thread what would run in another: on the test's connection, in its transaction."""

    def __init__(self, loop: StandingLoop, run: Callable[[Callable[[], None]], None]) -> None:
        self._loop = loop
        self._run = run

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        # Not at once: the caller may be in a task, which would prevent the function from running a loop of its own.
        self._loop.call_soon(self._work, future, lambda: fn(*args, **kwargs))
        return future

    def _work(self, future: Future[Any], call: Callable[[], Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        outcome: list[Any] = []
        try:
            self._run(lambda: outcome.append(call()))
        except BaseException as error:  # noqa: BLE001 - user code; raised where it is awaited
            future.set_exception(error)
        else:
            future.set_result(outcome[0])


class InlineThreads:
    """Replaces `engine.worker.bodies.threads.Threads`, without threads."""

    stuck = queued = running = 0
    all_stuck = False

    def __init__(self, loop: StandingLoop, run: Callable[[Callable[[], None]], None]) -> None:
        self._loop = loop
        self._run = run

    def submit(self, run: Callable[[], None], what: object = "") -> InlineJob:
        job = InlineJob()
        self._loop.call_soon(self._work, job, run)  # not at once: see Inline
        return job

    def _work(self, job: InlineJob, run: Callable[[], None]) -> None:
        if not job.is_given_up:
            job.has_begun = True
            self._run(run)

    def stop(self) -> None:
        """Do nothing: there is no thread."""


class InlineJob:
    """Replaces `engine.worker.bodies.threads.Job`."""

    has_begun = is_given_up = False

    def give_up(self) -> None:
        self.is_given_up = True


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: StandingLoop, clock: StandingClock) -> None:
        super().__init__()
        self._loop = loop
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        is_busy_outside = len(self.get_map()) > ITS_OWN or self._loop.waits_for_threads
        if timeout is None and not is_busy_outside and not self._loop.has_other_threads:
            raise RuntimeError("The worker waits, but nothing can happen any more.")
        if timeout is None or is_busy_outside:
            began = time.monotonic()
            ready = super().select(timeout)
            timeout = time.monotonic() - began
        elif self._loop.may_be_answered(timeout) and (ready := super().select(PATIENCE_SECONDS)):
            return ready
        self._clock.move_to(self._clock.us + math.ceil(timeout * MICROSECONDS))
        return ready
