"""Processes for the instances whose last worker died: one of them may have killed it."""

from __future__ import annotations

import logging
import os
import signal
import socket

from engine.worker.cluster import conf, guardian
from engine.worker.cluster.process_locks import Flag

logger = logging.getLogger("engine.cluster")

# One process per this many waiting instances; while any wait, one more after this many seconds; at most this many.
FOR_EACH = 2
QUARANTINE_SECONDS = 0.5
LARGEST = 12

# A shift has more threads for bodies, and more connections; here several processes replace one.
THREADS = 2

# After one worker has died, others may, and starting a process takes time for each of them.
IDLE_SECONDS = 10.0


class Quarantine:
    """Runs such instances in children of the pusher: one at a time in each, alone, until they progress.

    They are not django-q workers: a step that kills its process harms no others, and a long body blocks neither shifts
    nor tasks. An instance that has run alone for a while counts as harmless: its process keeps it and takes the next
    one as well. So a few processes are enough, however long the bodies run.
    """

    def __init__(self, stop: Flag) -> None:
        self._stop = stop
        self._children: set[int] = set()
        self._opened_at = float("-inf")
        self._drained = Flag()  # for the processes started from now on

    def drain(self, *, is_on: bool) -> None:
        """Let the processes claim nothing more, or start others that do: a flag cannot be taken back."""
        if is_on:
            self._drained.set()
        elif self._drained.is_set():
            self._drained = Flag()

    def open(self, now: float, waiting: int) -> None:
        """Start processes for this many waiting instances."""
        wanted = -(-waiting // FOR_EACH)
        if now >= self._opened_at + QUARANTINE_SECONDS:
            wanted = max(wanted, len(self._children) + 1)
            self._opened_at = now
        while len(self._children) < min(wanted, LARGEST) and not self._stop.is_set():
            self._start()

    def _start(self) -> None:
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            self._live(parent)
        self._children.add(child)

    def collect(self) -> bool:
        """Collect ended processes. Return whether one died and left what it held."""
        is_dead = False
        for child in tuple(self._children):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                self._children.remove(child)
            if status:
                logger.warning("A quarantine process ended by %s.", _cause(status))
                self._opened_at = float("-inf")
                is_dead = True
        return is_dead

    def wait(self) -> None:
        """Wait for all of them, because they die with this process: at a stop, what runs in them has a grace period."""
        for child in tuple(self._children):
            os.waitpid(child, 0)
            self._children.remove(child)

    def _live(self, parent: int) -> None:
        from engine.worker.drain import Drain
        from engine.worker.quarantined import TakesQuarantined
        from engine.worker.shift import Terms, run

        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            guardian.die_with(parent)
            name = f"{socket.gethostname()}:{os.getpid()}"
            terms = Terms(
                slots=1,
                threads=THREADS,
                name=name,
                should_stop=self._stop,
                idle_seconds=IDLE_SECONDS,
                takes_quarantined=TakesQuarantined.ONLY,
                drain=Drain(flag=self._drained),
            )
            with conf.as_in_project():
                run(terms)
        except BaseException:
            logger.exception("A quarantine process failed.")
        finally:
            os._exit(0)


def _cause(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"signal {-code}" if code < 0 else f"exit code {code}"
