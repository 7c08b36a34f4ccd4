"""Calls that async bodies send to threads, with `asyncio.to_thread` and the like: bounded, counted, never joined."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from engine.replay.nesting.body import current
from engine.values.errors import OpenTransactionError
from engine.worker.bodies import sessions
from engine.worker.bodies.threads import Job, Threads


class Call(Future[Any]):
    """One call on a thread. If it is cancelled while it runs, it is given up: asyncio cancels it with its awaiter."""

    def __init__(self, fn: Callable[[], Any]) -> None:
        super().__init__()
        self._fn: Callable[[], Any] | None = fn
        self._body = current.get()
        self._job: Job | None = None

    def __str__(self) -> str:
        return f"a call in a thread by {self._body or 'code outside of any body'}"

    @property
    def step(self) -> str:
        return "" if self._body is None else self._body.operation.label

    def submit_to(self, threads: Threads) -> None:
        self._job = threads.submit(self._run, self)

    def cancel(self) -> bool:
        is_cancelled = super().cancel()
        if self._job is not None and (is_cancelled or not self.done()):
            self._job.give_up()
        return is_cancelled

    def _run(self) -> None:
        fn, self._fn = self._fn, None
        if fn is None or not self.set_running_or_notify_cancel():
            return
        try:
            value = fn()
        except BaseException as error:  # noqa: BLE001 - user code; raised where it is awaited
            self.set_exception(error)
        else:
            self.set_result(value)


def call_on(threads: Threads, fn: Callable[[], Any]) -> asyncio.Future[Any]:
    """Call the function on a thread. A future of the running loop gets the result, as long as the loop exists."""
    call = Call(fn)
    call.submit_to(threads)
    return asyncio.wrap_future(call)


def check_sessions(step: str) -> None:
    """Roll back open transactions of this thread. Raises OpenTransactionError if there are any."""
    left = sessions.end_transactions()
    if left:
        raise OpenTransactionError(step, left)


class DaemonExecutor(ThreadPoolExecutor):
    """The default executor of a worker's loop. A call that hangs delays neither the loop's end nor the process's exit.

    Its `threads` keep no database connections: they belong to no body.
    """

    def __init__(self, threads: Threads) -> None:
        super().__init__(max_workers=1)  # asyncio accepts no other class; it never starts threads of its own
        self.threads = threads

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        call = Call(lambda: _checked(call.step, lambda: fn(*args, **kwargs)))
        call.submit_to(self.threads)
        return call

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end when they can. Never wait for them, whatever the arguments say."""
        self.threads.stop()


def _checked(step: str, fn: Callable[[], Any]) -> Any:
    value = fn()
    check_sessions(step)
    return value
