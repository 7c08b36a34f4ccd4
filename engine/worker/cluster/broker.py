"""django-q's broker, fed by PostgreSQL's notifications instead of polling."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, cast

from django.db import DEFAULT_DB_ALIAS, Error, connections
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.signing import BadSignature, SignedPackage

from engine.declare.registry import workflows
from engine.worker.cluster import conf
from engine.worker.cluster.broker_connection import TASKS, BrokerConnection
from engine.worker.cluster.dispatcher import Dispatcher, Package, Room
from engine.worker.cluster.process_locks import Flag
from engine.worker.cluster.quarantine import Quarantine
from engine.worker.cluster.shift_task import membership, slots
from engine.worker.database import cluster_sql as sql

logger = logging.getLogger("engine.cluster")

# How often an acknowledgement is tried, with pauses that double: six seconds in total, the length of a restart, and
# not much longer than a stop may take.
ACKNOWLEDGE_TRIES = 5
FIRST_PAUSE = 0.2


class Broker(ORM):  # type: ignore[misc]
    """The broker of our cluster. Set as `Q_CLUSTER["broker_class"]`, it serves the rows of `async_task` and Schedule
    like the ORM broker, but at once and never to two clusters. It starts processes for quarantined instances.

    Its methods that run in the cluster never raise: after an exception of `dequeue`, django-q sleeps ten seconds, and
    after one of `acknowledge`, its monitor ends.
    """

    dispatcher: Dispatcher | None = None

    @staticmethod
    def get_connection(list_key: str | None = None) -> Any:
        # Without a query, so that a cluster starts while the database is down.
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

    def open(self, *, stop: Flag, shifts: int, room: Room) -> None:
        """Set, before the pusher is forked, what it serves. Called by the sentinel."""
        self.dispatcher = Dispatcher(
            connection=BrokerConnection(alias=_alias(), key=self.list_key, stop=stop),
            stop=stop,
            room=room,
            room_size=0 if conf.is_separate() else max(1, Conf.WORKERS - shifts),
            retry=Conf.RETRY,
            slots=slots() * shifts,
            workflows=lambda: workflows.served,
            limits=workflows.limits,
            is_sound=_is_sound,
            quarantine=Quarantine(stop),
            membership=membership(),
        )

    def dequeue(self) -> list[Package] | None:
        if self.dispatcher is None:
            return cast("list[Package] | None", super().dequeue())
        try:
            return self.dispatcher.next() or None
        except Exception:
            logger.exception("The broker raised an error; it continues.")
            self.dispatcher.stop.wait(1)
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


def _is_sound(payload: str) -> bool:
    """Return whether django-q's pusher survives this payload.

    It drops badly signed tasks; any other failure to unpickle, for example of a renamed class, would end it. A task
    that is skipped stays queued for `retry` seconds, and for the next deployment.
    """
    try:
        SignedPackage.loads(payload)
    except (TypeError, BadSignature):
        return True
    except Exception:
        logger.exception("A queued task cannot be unpickled; it stays in the queue.")
        return False
    return True
