"""The heartbeat: renews the leases of a shift from a thread of its own, and watches that the loop moves."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable

import psycopg

from engine.worker import sql
from engine.worker.connect import parameters

log = logging.getLogger("engine.heart")

LEASE_SECONDS = 30
BEAT_SECONDS = 5
STALL_SECONDS = 30  # a body that blocks the loop for longer ends its worker; alone in it, it convicts itself


class Heart:
    """Beats until stopped. A thread, because what it guards against is a loop that no longer turns."""

    def __init__(self, seat: int, allowance: Callable[[], float]) -> None:
        self._seat = seat
        self._allowance = allowance  # seconds of handler code that the present turn may take
        self._stopped = threading.Event()
        self._moved_at = time.monotonic()
        self._thread = threading.Thread(target=self._beat, name="heart", daemon=True)
        self.holds = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def moved(self) -> None:
        """Called by the loop, every second or so."""
        self._moved_at = time.monotonic()

    def _beat(self) -> None:
        connection: psycopg.Connection | None = None
        renewed_at = time.monotonic()
        while not self._stopped.wait(1.0):
            self._check_stall()
            if not self.holds or time.monotonic() - renewed_at < BEAT_SECONDS:
                continue
            renewed_at = time.monotonic()
            try:
                if connection is None or connection.closed:
                    connection = psycopg.connect(**parameters(), autocommit=True)
                connection.execute(sql.RENEW, {"seat": self._seat, "lease": LEASE_SECONDS}, prepare=True)
            except psycopg.Error as error:
                log.warning("a heartbeat failed: %s", error)
                connection = None
        if connection is not None:
            connection.close()

    def _check_stall(self) -> None:
        stalled = time.monotonic() - self._moved_at
        if stalled > STALL_SECONDS + self._allowance():
            log.critical("the worker's loop has not moved for %.0f s: ending this process", stalled)
            os.kill(os.getpid(), signal.SIGKILL)
