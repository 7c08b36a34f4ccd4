"""A thread next to the loop, for calls that may hang."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable

from engine.worker.bodies.thread_calls import call_on
from engine.worker.bodies.threads import Threads

SLOW_SECONDS = 1.0  # after which the log names the call
PATIENCE_SECONDS = 10.0  # after which the call is abandoned, with its thread

log = logging.getLogger("engine.notices")


class SideThread:
    """Makes one call after another. A call that hangs is abandoned, and not repeated while it hangs."""

    def __init__(self) -> None:
        self._threads = self._thread()
        # Not on the loop, which would hang with the log, nor on the thread that hangs.
        self._warnings = self._thread()
        self._hanging: set[Hashable] = set()

    def hangs(self, *, key: Hashable = 0) -> bool:
        """Return whether a call with that key has not returned, so that another one would not be made."""
        return key in self._hanging

    async def call(self, function: Callable[[], object], *, key: Hashable = 0, name: str = "") -> bool:
        """Make the call; its errors are logged. Return False if it has not returned in time, or was not made.

        Calls that may hang independently have different keys.
        """
        if self.hangs(key=key):
            self._warn(logging.ERROR, "%s still hangs and was not called", name)
            return False
        self._hanging.add(key)
        over = call_on(self._threads, lambda: self._run(function, key, name))
        if await _is_over_within(SLOW_SECONDS, over):
            return True
        self._warn(logging.WARNING, "%s has not returned after %g s", name, SLOW_SECONDS)
        if await _is_over_within(PATIENCE_SECONDS - SLOW_SECONDS, over):
            return True
        self._warn(logging.ERROR, "%s has not returned after %g s and is abandoned", name, PATIENCE_SECONDS)
        self._threads.stop()
        self._threads = self._thread()
        return False

    def stop(self) -> None:
        """Let the threads end when their calls have ended."""
        self._threads.stop()
        self._warnings.stop()

    def _thread(self) -> Threads:
        return Threads(1, name="notices")

    def _warn(self, level: int, message: str, *arguments: object) -> None:
        self._warnings.submit(lambda: log.log(level, message, *arguments))

    def _run(self, function: Callable[[], object], key: Hashable, name: str) -> None:
        try:
            function()
        except (
            BaseException
        ):  # user code: whatever it raises, the thread survives, and the other calls are made
            log.exception("%s failed", name)
        finally:
            self._hanging.discard(key)  # even if the log refuses that line


async def _is_over_within(seconds: float, over: asyncio.Future[None]) -> bool:
    done, _ = await asyncio.wait([over], timeout=seconds)
    return bool(done)
