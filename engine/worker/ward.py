"""A process for the instances whose last worker died: one of them may have killed it."""

from __future__ import annotations

import logging
import os
import signal
import socket

from engine.worker import guardian
from engine.worker.latch import Latch

logger = logging.getLogger("engine.cluster")

# A moment for the next one that a dying worker leaves; after it the process goes.
IDLE_SECONDS = 2.0


class Ward:
    """Runs such instances one at a time, each alone, in a child of the pusher, while there are any.

    Shifts do it too while they have nothing else, but under load they never have nothing else. It is no worker of
    django-q's: a poisoned step may kill it as often as it likes, and no place for shifts or tasks is taken.
    """

    def __init__(self, stop: Latch) -> None:
        self._stop = stop
        self._child: int | None = None

    def open(self) -> None:
        """Start the process, unless it runs."""
        self.collect()
        if self._child is not None or self._stop.is_set():
            return
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            self._live(parent)
        self._child = child

    def collect(self) -> bool:
        """Take note of the end of the process; tell whether it died, and left what it held."""
        if self._child is None:
            return False
        ended, status = os.waitpid(self._child, os.WNOHANG)
        if not ended:
            return False
        self._child = None
        if status:
            logger.warning("The process that runs instances alone ended by %s.", _cause(status))
        return bool(status)

    def wait(self) -> None:
        """Wait for the end of the process, which dies with this one: what runs in it has its grace at a stop."""
        if self._child is not None:
            os.waitpid(self._child, 0)
            self._child = None

    def _live(self, parent: int) -> None:
        from engine.worker.shift import run

        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            guardian.die_with(parent)
            name = f"{socket.gethostname()}:{os.getpid()}"
            run(slots=1, name=name, should_stop=self._stop, idle_seconds=IDLE_SECONDS, isolates=True)
        except BaseException:
            logger.exception("The process that runs instances alone broke off.")
        finally:
            os._exit(0)


def _cause(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"signal {-code}" if code < 0 else f"exit code {code}"
