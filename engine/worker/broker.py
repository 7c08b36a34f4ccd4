"""django-q's broker, fed by PostgreSQL's notifications instead of polling."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable
from typing import Any, cast

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connections
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.signing import BadSignature, SignedPackage

from engine.registry import workflows
from engine.worker import cluster_sql as sql
from engine.worker.agenda import Agenda, Chore
from engine.worker.latch import Latch
from engine.worker.places import Places
from engine.worker.supply import Package, Room, Supply
from engine.worker.ward import Ward
from engine.worker.watch import TASKS, Watch

logger = logging.getLogger("engine.cluster")

# How often an acknowledgement is tried, with pauses that double from the first: six seconds in all, the
# length of a restart, and not much more than a stop may take.
ACKNOWLEDGE_TRIES = 5
FIRST_PAUSE = 0.2

# A chore that takes longer than this waits for something; it comes again.
CHORE_SECONDS = 60


def slots() -> int:
    """Return how many instances one shift drives at a time."""
    return int(getattr(settings, "REPRISE_SLOTS", 64))


class Broker(ORM):  # type: ignore[misc]
    """Set as `Q_CLUSTER["broker_class"]`: sends shifts to the workers while instances are due, and serves the
    rows of `async_task` and Schedule as the ORM broker does, only at once and never to two clusters.

    None of its methods that run in the cluster raises: django-q answers an exception of `dequeue` with ten
    seconds of sleep, and one of `acknowledge` with the end of its monitor.
    """

    supply: Supply | None = None

    @staticmethod
    def get_connection(list_key: str | None = None) -> Any:
        # Without asking the database, so that a cluster starts while it is down.
        _close_if_old()
        return OrmQ.objects.using(_alias())

    def enqueue(self, task: str) -> int:
        """Queue a signed task, in the caller's transaction. Returns the row's id."""
        values = {"key": self.list_key or Conf.CLUSTER_NAME, "payload": task, "channel": TASKS}
        _close_if_old()
        with connections[_alias()].cursor() as cursor:
            cursor.execute(sql.ENQUEUE_TASK, values)
            (key,) = cursor.fetchone()
        return int(key)

    def open(self, *, stop: Latch, places: Places, room: Room) -> None:
        """Say, before the pusher is forked, what it serves. The sentinel does it."""
        self.supply = Supply(
            watch=Watch(alias=_alias(), key=self.list_key, stop=stop),
            places=places,
            stop=stop,
            room=room,
            room_size=Conf.QUEUE_LIMIT or Conf.WORKERS,
            retry=Conf.RETRY,
            slots=slots(),
            workflows=lambda: workflows,
            limits=workflows.limits,
            codes=workflows.codes_that_pause,
            make_shift=_shift_package,
            make_chore=_chore_package,
            is_sound=_is_sound,
            ward=Ward(stop),
            agenda=Agenda(is_kept=Conf.SCHEDULER, is_default=Conf.CLUSTER_NAME == Conf.PREFIX),
        )

    def dequeue(self) -> list[Package] | None:
        if self.supply is None:
            return cast("list[Package] | None", super().dequeue())
        try:
            return self.supply.next() or None
        except Exception:
            logger.exception("The broker stumbled; it goes on.")
            self.supply.stop.wait(1)
            return None

    def acknowledge(self, task_id: int) -> None:
        self._surely(lambda: super(Broker, self).acknowledge(task_id), f"acknowledge task {task_id}")

    def fail(self, task_id: int) -> None:
        self._surely(lambda: super(Broker, self).fail(task_id), f"drop task {task_id}")

    def _surely(self, act: Callable[[], Any], what: str) -> None:
        pause = FIRST_PAUSE
        for _ in range(ACKNOWLEDGE_TRIES):
            try:
                act()
            except Error:
                time.sleep(pause)
                pause *= 2
            else:
                return
        logger.error("The broker could not %s; the task will run again.", what)


def _alias() -> str:
    return Conf.ORM or DEFAULT_DB_ALIAS


def _close_if_old() -> None:
    connection = connections[_alias()]
    # Never inside a transaction: Django would close the connection under it.
    if connection.autocommit:
        connection.close_if_unusable_or_obsolete()


def _shift_package(place: int) -> str:
    """Sign the task that runs a shift: no alarm clock ends it."""
    return _package("shift", "engine.worker.cluster.shift", (place,), timeout=-1)


def _chore_package(chore: Chore) -> str:
    return _package(chore, f"engine.worker.upkeep.{chore}", (), timeout=CHORE_SECONDS)


def _package(name: str, func: str, args: tuple[int, ...], *, timeout: int) -> str:
    """Sign a task of which nothing is stored, and that nobody runs a second time."""
    key = uuid.uuid4().hex
    task = {
        "id": key,
        "name": f"{name}-{key[:8]}",
        "func": func,
        "args": args,
        "kwargs": {},
        "started": timezone.now(),
        "save": False,
        "timeout": timeout,
    }
    return str(SignedPackage.dumps(task))


def _is_sound(payload: str) -> bool:
    """Tell whether django-q's pusher survives this payload.

    It drops what is badly signed; any other failure to unpickle, say of a class that was renamed, would end
    it. Left out, the task stays queued for `retry` seconds, and for the next deployment.
    """
    try:
        SignedPackage.loads(payload)
    except (TypeError, BadSignature):
        return True
    except Exception:
        logger.exception("A queued task cannot be unpickled; it stays in the queue.")
        return False
    return True
