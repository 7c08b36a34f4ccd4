"""Processes that end with their parent, and inherit nothing from it that cannot be shared."""

from __future__ import annotations

import ctypes
import gc
import logging
import multiprocessing.context
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Any

from engine.worker.cluster.deadline import Deadline
from engine.worker.cluster.process_locks import Flag

logger = logging.getLogger("engine.cluster")

PR_SET_PDEATHSIG = 1

RECYCLED = -2  # django-q's timer value for a worker that ended on purpose

# How long a process may take to exit once its work is done. A body that hangs in a thread would block it forever.
EXIT_SECONDS = 5

# The kernel closes a process's files, which wakes the guard, a moment before the process is visibly dead.
DYING_SECONDS = 0.5


def die_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent dies, and exit at once if it is already dead.

    A cluster without its main process, or workers without their sentinel, would continue to run old code unguarded.
    Linux only; elsewhere it does nothing.
    """
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os._exit(1)


class Process(multiprocessing.context.ForkProcess):
    """A forked process that outlives neither its parent nor its own work, and may request its replacement."""

    timer: Deadline  # set by django-q for a worker

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._leaves = Flag()

    @property
    def is_leaving(self) -> bool:
        """Return whether another process replaces this one, although it may still be working."""
        return self._leaves.is_set()

    def leave(self) -> None:
        """Make the sentinel replace this worker, which finishes its work and ends by itself. Called in the worker."""
        self.timer.value = RECYCLED
        self._leaves.set()

    def is_alive(self) -> bool:
        """Return whether it runs and takes work. django-q's guard replaces a worker that does not."""
        ends_at = time.monotonic() + DYING_SECONDS
        while super().is_alive() and wait([self.sentinel], 0) and time.monotonic() < ends_at:
            time.sleep(0.001)
        return super().is_alive() and not self.is_leaving

    def ends(self) -> tuple[int, int]:
        """Return the files that become readable when it must be replaced: because it died, or because it leaves."""
        return self.sentinel, self._leaves.fileno()

    def start(self) -> None:
        # What is loaded by now stays loaded. Excluded from garbage collection, it is not copied into each child, and
        # the main process does not spend half a second on it before it exits.
        gc.freeze()
        super().start()

    def run(self) -> None:
        # multiprocessing recorded the parent before the fork, so a parent that died in between is noticed.
        parent: Any = self._parent_pid  # type: ignore[attr-defined]
        die_with(parent)
        try:
            super().run()
        finally:
            _exit_soon()


class Context:
    """The part of a multiprocessing context that django-q uses: its processes, guarded."""

    Process = Process


@contextmanager
def no_longer_than(seconds: float, *, after: Flag) -> Iterator[None]:
    """End this process if the block is still running this long after the flag was set."""
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            if after.wait(1) and not done.wait(seconds):
                logger.critical("A shift did not stop within %d seconds; its worker is killed.", seconds)
                os._exit(1)

    threading.Thread(target=watch, name="reprise-stop-watch", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _exit_soon() -> None:
    deadline = threading.Timer(EXIT_SECONDS, os._exit, [1])
    deadline.daemon = True
    deadline.start()
