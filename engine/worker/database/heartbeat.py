"""The heartbeat: renews the leases of a shift from a thread of its own, and watches that the loop moves."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable

import psycopg

from engine.configuration import setting
from engine.models.connection import parameters
from engine.worker.database import sql
from engine.worker.database.connect import LIMITS, LimitedConnection, connect_limited

log = logging.getLogger("engine.heart")

BEATS_A_LEASE = 6
TICK_SECONDS = 1.0
SOON_SECONDS = 0.05  # until another beat for rows that were locked
LAST_SECONDS = 2.0  # for logging before the end
PATIENCE = 3  # a beat waits for its answer for this fraction of a lease
# A body that blocks the loop for longer ends its worker; in quarantine, that counts as a crash.
STALL_SECONDS = 30


def lease_seconds() -> float:
    """Return how long a silent worker keeps its instances: the setting LEASE."""
    return float(setting("LEASE"))


class Heartbeat:
    """Beats until stopped. A thread, because it guards against a loop that no longer turns."""

    def __init__(
        self,
        worker_id: int,
        allowance: Callable[[], float],
        on_stall: Callable[[str], None] = lambda reason: None,
    ) -> None:
        self._worker_id = worker_id
        self._on_stall = on_stall  # called on the heartbeat's thread before the process ends
        self._allowance = allowance  # seconds of handler code allowed in the current turn of the loop
        self._lease = lease_seconds()
        self._stopped = threading.Event()
        self._moved_at = time.monotonic()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._connection: LimitedConnection | None = None
        self.holds = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def moved(self) -> None:
        """Called by the loop, several times a second."""
        self._moved_at = time.monotonic()

    def _beat(self) -> None:
        renewed_at = slept_at = time.monotonic()
        beat = self._lease / BEATS_A_LEASE
        skipped = list[int]()
        while not self._stopped.wait(SOON_SECONDS if skipped else min(beat, TICK_SECONDS)):
            self._check_stall(slept_for=time.monotonic() - slept_at)
            slept_at = time.monotonic()
            is_time = self.holds and time.monotonic() - renewed_at >= beat
            if not (is_time or skipped):
                continue
            renewed_at = time.monotonic() if is_time else renewed_at
            try:
                skipped = self._renew(None if is_time else skipped)
            except psycopg.Error as error:
                log.warning("a heartbeat failed: %s", error)
                self._close()
                skipped, renewed_at = [], renewed_at - beat  # again at the next tick
        self._close()

    def _renew(self, only: list[int] | None) -> list[int]:
        """Renew the leases of this worker, or some of them. Return the instances whose rows are locked."""
        if self._connection is None or self._connection.closed:
            # A beat without an answer must end early enough for another one before the lease expires.
            self._connection = connect_limited(self._lease / PATIENCE, **parameters())
            self._connection.execute(LIMITS)
        values = {"worker_id": self._worker_id, "lease": self._lease, "only": only}
        return [key for (key,) in self._connection.execute(sql.RENEW, values, prepare=True)]

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _check_stall(self, *, slept_for: float) -> None:
        if slept_for > 2 * TICK_SECONDS:
            # This thread did not run either: the process or the machine was stopped. The loop is not the cause.
            self._moved_at += slept_for - TICK_SECONDS
        stalled = time.monotonic() - self._moved_at
        if stalled > STALL_SECONDS + self._allowance():
            try:
                _log_the_end(stalled)
                self._on_stall(f"Its loop has not moved for {stalled:.0f} s.")
            finally:  # even if no thread is left to report it
                os.kill(os.getpid(), signal.SIGKILL)


def _log_the_end(stalled: float) -> None:
    """Log the reason, unless logging hangs: that may be what blocks the loop."""
    said = "the worker's loop has not moved for %.0f s: ending this process"
    thread = threading.Thread(target=log.critical, args=(said, stalled), daemon=True)
    thread.start()
    thread.join(LAST_SECONDS)
