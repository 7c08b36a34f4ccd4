"""The main process of a cluster: when it starts, what it logs, and how it ends."""

from __future__ import annotations

import atexit
import importlib
import logging
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any

import django_q.cluster
import psycopg
from django_q.conf import Conf

from engine.configuration import setting
from engine.declare.registry import workflows
from engine.models.connection import parameters
from engine.status import schema
from engine.steer.notify import REAP, WAKE
from engine.version import VERSION
from engine.worker.cluster import conf, shift_task
from engine.worker.cluster.broker_connection import ANSWER_SECONDS
from engine.worker.cluster.process_locks import Flag
from engine.worker.database.connect import connect_limited

logger = logging.getLogger("reprise.cluster")

LOOK_SECONDS = 1.0
CONNECT_SECONDS = 2
LOST = 1  # the exit code of a cluster that ends without having been told to stop


class Cluster(django_q.cluster.Cluster):  # type: ignore[misc]
    """django-q's cluster. It starts once the database is migrated, and ends with an error if its guard is lost.

    SIGTERM gives bodies 10 s to end; SIGUSR1 stops it, too, but lets them take as long as they need.
    """

    is_told_to_stop = False

    def __init__(self, broker: Any = None, *, workers: int | None = None) -> None:
        super().__init__(broker)
        self.workers = workers
        self._is_patient = False
        self._hurry = Flag()
        shift_task.hurry_after(self._hurry)
        signal.signal(signal.SIGUSR1, self.sig_handler)

    def sig_handler(self, signum: int, frame: Any) -> None:
        self._is_patient = signum == signal.SIGUSR1
        super().sig_handler(signum, frame)

    def start(self) -> int:
        conf.prepare_process(workers=self.workers)
        self._wait_for_tables()
        if self.is_told_to_stop:
            return int(self.pid)
        # Loaded here, its memory is shared by all processes of the cluster: 95 MB instead of 99.
        importlib.import_module("engine.worker.shift")
        try:
            super().start()
        except RuntimeError:  # the guard died at once; django-q has logged it
            sys.exit(LOST)
        if self.is_told_to_stop:  # too early for django-q to notice
            super().stop()
            return int(self.pid)
        logger.info("Cluster started: %s", _facts())
        # Before multiprocessing silently waits for the guard, whatever happens to it.
        atexit.register(self._outlive_guard)
        return int(self.pid)

    def stop(self) -> bool:
        if not self._is_patient:
            self._hurry.set()
        if self.is_told_to_stop:
            return False
        self.is_told_to_stop = True
        if self.sentinel is None:
            return False
        is_stopped = bool(super().stop())
        if is_stopped:
            logger.info("Cluster stopped: %s", _facts())
        return is_stopped

    def _wait_for_tables(self) -> None:
        """Wait until the tables exist. If the database does not answer, the parts that need it wait."""
        lacking = _lacking()
        if lacking:
            logger.error("%s The cluster waits until then.", schema.sentence(lacking))
        while lacking and not self.is_told_to_stop:
            time.sleep(LOOK_SECONDS)
            lacking = _lacking()

    def _outlive_guard(self) -> None:
        guard: Any = self.sentinel
        if os.getpid() != self.pid:  # inherited by a fork
            return
        guard.join()
        if self.is_told_to_stop:
            return
        logger.critical(
            "The cluster lost the process that guards its workers (%s), and all workers with it. "
            "It ends with exit code %d; its supervisor should start another.",
            _how_it_ended(guard.exitcode),
            LOST,
        )
        _have_work_taken_over()
        logging.shutdown()
        # No other way changes the exit code here.
        os._exit(LOST)


def _have_work_taken_over() -> None:
    """Notify other clusters at once that these workers are gone. Otherwise they notice within a second."""
    with suppress(Exception):  # the exit code matters more
        options = parameters() | {"application_name": "reprise-cluster", "connect_timeout": CONNECT_SECONDS}
        with connect_limited(ANSWER_SECONDS, **options) as connection:
            connection.execute("SELECT pg_notify(%s, %s)", (WAKE, REAP))


def _lacking() -> list[str]:
    try:
        return schema.missing(Conf.ORM or "default")
    except psycopg.Error:
        return []


def _facts() -> str:
    workers, slots = Conf.WORKERS, setting("SLOTS")
    return (
        f"Reprise {VERSION}, database {schema.described()}, {workers} worker{'s' * (workers != 1)}, "
        f"{slots} slots in each, {len(workflows)} workflow{'s' * (len(workflows) != 1)}"
    )


def _how_it_ended(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
