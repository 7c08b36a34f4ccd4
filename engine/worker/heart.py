"""The heartbeat: renews the leases of a shift from a thread of its own, and watches that the loop moves."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable

import psycopg
from django.conf import settings

from engine.worker import sql
from engine.worker.connect import parameters

log = logging.getLogger("engine.heart")

LEASE_SECONDS = 30.0
BEATS_A_LEASE = 6
TICK_SECONDS = 1.0
STALL_SECONDS = 30  # a body that blocks the loop for longer ends its worker; alone in it, it convicts itself


def lease_seconds() -> float:
    """Return how long a worker that says nothing keeps its instances: REPRISE_LEASE, or 30 s."""
    return float(getattr(settings, "REPRISE_LEASE", LEASE_SECONDS))


class Heart:
    """Beats until stopped. A thread, because what it guards against is a loop that no longer turns."""

    def __init__(self, seat: int, allowance: Callable[[], float]) -> None:
        self._seat = seat
        self._allowance = allowance  # seconds of handler code that the present turn may take
        self._lease = lease_seconds()
        self._stopped = threading.Event()
        self._moved_at = time.monotonic()
        self._thread = threading.Thread(target=self._beat, name="heart", daemon=True)
        self.holds = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def moved(self) -> None:
        """Called by the loop, several times a second."""
        self._moved_at = time.monotonic()

    def _beat(self) -> None:
        connection: psycopg.Connection | None = None
        renewed_at = slept_at = time.monotonic()
        beat = self._lease / BEATS_A_LEASE
        while not self._stopped.wait(min(beat, TICK_SECONDS)):
            self._check_stall(slept_for=time.monotonic() - slept_at)
            slept_at = time.monotonic()
            if not self.holds or time.monotonic() - renewed_at < beat:
                continue
            renewed_at = time.monotonic()
            try:
                if connection is None or connection.closed:
                    connection = psycopg.connect(**parameters(), autocommit=True)
                connection.execute(sql.RENEW, {"seat": self._seat, "lease": self._lease}, prepare=True)
            except psycopg.Error as error:
                log.warning("a heartbeat failed: %s", error)
                connection = None
        if connection is not None:
            connection.close()

    def _check_stall(self, *, slept_for: float) -> None:
        if slept_for > 2 * TICK_SECONDS:
            # This thread did not move either: the process was stopped, or the machine. That is not the loop's doing.
            self._moved_at += slept_for - TICK_SECONDS
        stalled = time.monotonic() - self._moved_at
        if stalled > STALL_SECONDS + self._allowance():
            log.critical("the worker's loop has not moved for %.0f s: ending this process", stalled)
            os.kill(os.getpid(), signal.SIGKILL)
