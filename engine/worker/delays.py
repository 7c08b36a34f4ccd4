"""Functions given as `delay`: asked how long to wait after an error, in a thread if they are sync, and not for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from engine.durations import parse_duration
from engine.worker.threads import Threads

LIMIT_SECONDS = 5.0


async def ask(function: Callable[..., Any], *args: Any, is_async: bool, threads: Threads) -> timedelta:
    """Return its answer. Raises what it raises, ValueError for what is no duration, and TimeoutError."""
    async with asyncio.timeout(LIMIT_SECONDS):
        answer = await (function(*args) if is_async else _Call(threads).run(lambda: function(*args)))
    return parse_duration(answer, what="delay")


class _Call:
    """One call in a thread, which counts as stuck from when its answer is no longer waited for."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[Any] = self._loop.create_future()
        self._runs = False
        self._is_stuck = False

    async def run(self, function: Callable[[], Any]) -> Any:
        self._threads.submit(lambda: self._in_thread(function))
        try:
            return await self._answer
        finally:
            self._count()

    def _in_thread(self, function: Callable[[], Any]) -> None:
        if self._answer.done():
            return  # while it waited for a thread
        self._tell(self._begin)
        try:
            value = function()
        except BaseException as raised:  # noqa: BLE001 - user code
            self._tell(
                self._end, None, raised if isinstance(raised, Exception) else RuntimeError(repr(raised))
            )
        else:
            self._tell(self._end, value, None)

    def _tell(self, callback: Callable[..., None], *args: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:  # the shift has ended without this thread
            return

    def _begin(self) -> None:
        self._runs = True
        self._count()

    def _count(self) -> None:
        if self._runs and self._answer.done() and not self._is_stuck:
            self._is_stuck = True
            self._threads.stuck += 1

    def _end(self, value: Any, error: Exception | None) -> None:
        self._runs = False
        if self._is_stuck:
            self._threads.stuck -= 1
        elif error is not None and not self._answer.done():
            self._answer.set_exception(error)
        elif not self._answer.done():
            self._answer.set_result(value)
