"""The ORM calls of async bodies: on a few shared threads, each with its own connections.

A body stays on one thread, because a cursor cannot move; several bodies on a thread take turns, call by call. A thread
whose call was given up and does not return takes no further calls until it does; waiting calls move to another thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any

from asgiref.sync import SyncToAsync, ThreadSensitiveContext

from engine.worker.bodies import sessions
from engine.worker.bodies.thread_calls import Call, check_sessions
from engine.worker.bodies.threads import Threads


class Lane:
    """One thread, and the number of bodies that use it."""

    def __init__(self, number: int) -> None:
        self.threads = Threads(1, name=f"orm-{number}", replaces_stuck=False)
        self.bodies = 0

    @property
    def load(self) -> tuple[int, int, int]:
        return self.threads.stuck, self.threads.queued + self.threads.running, self.bodies


class OrmCalls:
    """All these threads."""

    def __init__(self, size: int) -> None:
        self._lock = threading.RLock()
        self._lanes = [Lane(number) for number in range(1, size + 1)]

    @property
    def stuck(self) -> int:
        return sum(lane.threads.stuck for lane in self._lanes)

    @property
    def all_stuck(self) -> bool:
        return all(lane.threads.all_stuck for lane in self._lanes)

    @property
    def left(self) -> list[object]:
        return [what for lane in self._lanes for what in lane.threads.left]

    @property
    def given_up(self) -> list[object]:
        return [what for lane in self._lanes for what in lane.threads.given_up]

    def stop(self) -> None:
        for lane in self._lanes:
            lane.threads.stop()

    def move(self, body: BodyCalls) -> Lane:
        """Return the body's thread: the least busy one at its first call, or if its own is stuck."""
        with self._lock:
            before = body.lane
            if before is not None and not before.threads.stuck:
                return before
            body.lane = min(self._lanes, key=lambda lane: lane.load)
            if body.lane is not before:
                self._leave(before)
                body.lane.bodies += 1
                body.is_new = True
            return body.lane

    def leave(self, body: BodyCalls) -> None:
        """Record that the body has ended. After the last one on a thread, renew its connections as after a request."""
        with self._lock:
            lane, body.lane = body.lane, None
            self._leave(lane)

    def _leave(self, lane: Lane | None) -> None:
        if lane is not None:
            lane.bodies -= 1
            if not lane.bodies:
                with suppress(RuntimeError):  # it has stopped, and its thread closes all connections
                    lane.threads.submit(sessions.tidy, "renewing the connections of a thread")

    def clear(self, lane: Lane) -> None:
        """Move the calls that wait for a stuck thread to other threads."""
        with self._lock:
            for job in lane.threads.withdraw():
                if isinstance(job.what, OrmCall):
                    job.what.submit_to(self.move(job.what.body).threads)


class BodyCalls(Executor):
    """The executor of one body's `sync_to_async` calls."""

    def __init__(self, calls: OrmCalls) -> None:
        self._calls = calls
        self.lane: Lane | None = None
        self.is_new = False
        self.context = ThreadSensitiveContext()
        SyncToAsync.context_to_thread_executor[self.context] = self

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        call = OrmCall(self, lambda: self._call(call.step, lambda: fn(*args, **kwargs)))
        call.submit_to(self._calls.move(self).threads)
        return call

    def leave(self) -> None:
        SyncToAsync.context_to_thread_executor.pop(self.context, None)
        self._calls.leave(self)

    def given_up(self) -> None:
        """Give up a call: if it runs, its thread is stuck."""
        lane = self.lane
        if lane is not None and lane.threads.stuck:
            self._calls.clear(lane)

    def _call(self, step: str, fn: Callable[[], Any]) -> Any:
        lane, is_new = self.lane, self.is_new
        self.is_new = False
        sessions.renew_shared(is_new=is_new, is_alone=lane is None or lane.bodies == 1)
        try:
            value = fn()
        except BaseException:
            sessions.end_transactions()
            raise
        check_sessions(step)
        return value


class OrmCall(Call):
    """One call of a body."""

    def __init__(self, body: BodyCalls, fn: Callable[[], Any]) -> None:
        super().__init__(fn)
        self.body = body

    def cancel(self) -> bool:
        is_cancelled = super().cancel()
        self.body.given_up()
        return is_cancelled
