"""What django-q's processes need to survive the sudden death of any of them.

`harden()` gives django-q other parts where its own keep locks that a killed process takes with it; the stock
command `manage.py qcluster` then runs with them. What cannot be mended from here is reported by the system
checks.
"""

from __future__ import annotations

import logging
import pickle
from typing import Any

import django_q.cluster
from django.db import DEFAULT_DB_ALIAS, connections
from django_q.signals import post_execute_in_worker, post_spawn

from engine.steer import notify
from engine.worker.cluster import allowed_tasks, forks, guardian, main, shift_task
from engine.worker.cluster.deadline import Deadline
from engine.worker.cluster.process_locks import Flag
from engine.worker.cluster.queue import Queue, is_supported
from engine.worker.cluster.sentinel import Sentinel

logger = logging.getLogger("engine.cluster")


def harden() -> None:
    """Give django-q our parts. Called in every process that loads the engine, before it forks."""
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
    """Have the instances of a worker that died taken over at once: a new worker took its place."""
    if not shift_task.has_started():
        return
    try:
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [notify.WAKE, notify.REAP])
        connections.close_all()
    except Exception:
        # An exception of a receiver would kill the worker. The sweep finds what the hint would have told.
        logger.exception("A new worker could not say that it is there.")


def _refuse_unpicklable(task: dict[str, Any], **_: Any) -> None:
    """Turn a result that cannot be stored into a failure; django-q would run the task forever."""
    result = task.get("result")
    try:
        pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001 - whatever a foreign __reduce__ raises
        task["success"] = False
        task["result"] = f"The task returned a {type(result).__name__} that cannot be pickled: {error}"
