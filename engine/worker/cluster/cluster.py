"""Make django-q's processes survive the sudden death of any of them.

`harden()` replaces parts of django-q that keep locks after a process is killed. It does so for `manage.py workers`; and
for the stock command `manage.py qcluster`, unless Q_CLUSTER describes a cluster of the project's own. The system checks
report what cannot be fixed here.
"""

from __future__ import annotations

import logging
import pickle
from typing import Any

import django_q.cluster
from django.db import DEFAULT_DB_ALIAS, connections
from django_q.signals import post_execute_in_worker, post_spawn

from engine.steer import notify
from engine.worker.cluster import allowed_tasks, conf, forks, guardian, main, options, shift_task
from engine.worker.cluster.deadline import Deadline
from engine.worker.cluster.process_locks import Flag
from engine.worker.cluster.queue import Queue, is_supported
from engine.worker.cluster.sentinel import Sentinel

logger = logging.getLogger("engine.cluster")


def take_part() -> None:
    """Make django-q ours in this process, unless the project has a cluster of its own."""
    if options.runs_tasks():
        conf.complete()
        harden()


def run(*, workers: int | None = None) -> None:
    """Start our cluster, whatever Q_CLUSTER says. Its main process is this one, which ends when the cluster does."""
    if not options.runs_tasks():
        conf.separate()
        harden()
    conf.keep_connections()
    main.Cluster(workers=workers).start()


def harden() -> None:
    """Replace django-q's parts with ours, before this process forks."""
    forks.guard()
    allowed_tasks.guard()
    parts: dict[str, Any] = {
        "Event": Flag,
        "Value": Deadline,
        "Cluster": main.Cluster,
        "Sentinel": Sentinel,
        "get_mp_context": guardian.Context,
    }
    if is_supported():
        parts["Queue"] = Queue
    for name, part in parts.items():
        setattr(django_q.cluster, name, part)
    post_spawn.connect(_announce, dispatch_uid="engine.announce")
    post_execute_in_worker.connect(_refuse_unpicklable, dispatch_uid="engine.refuse_unpicklable")


def _announce(**_: Any) -> None:
    """Notify others that a worker died and was replaced, so that its instances are taken over at once."""
    if not shift_task.has_started():
        return
    try:
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [notify.WAKE, notify.REAP])
        connections.close_all()
    except Exception:
        # An exception of a receiver would kill the worker. The sweep finds what the notification would have reported.
        logger.exception("A new worker could not announce itself.")


def _refuse_unpicklable(task: dict[str, Any], **_: Any) -> None:
    """Turn a result that cannot be stored into a failure; django-q would run the task forever."""
    result = task.get("result")
    try:
        pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001 - whatever a foreign __reduce__ raises
        task["success"] = False
        task["result"] = f"The task returned a {type(result).__name__} that cannot be pickled: {error}"
