"""The options of our cluster, in the words of Q_CLUSTER, and whether the project's tasks are its work too.

Imports no django-q, whose settings take effect when they are first imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

BROKER = "engine.worker.broker.Broker"
BROKER_CLASS = "engine.worker.cluster.broker.Broker"  # which that is

NAME = "reprise"

# What an option is that the project's Q_CLUSTER leaves out. The number of workers follows from the setting WORKERS.
OPTIONS: Mapping[str, Any] = {
    "broker_class": BROKER,
    "orm": "default",
    "cache": "default",
    "bulk": 1,
    "timeout": 300,
    "retry": 600,
    "ack_failures": True,
    "max_attempts": 1,
    "save_limit": -1,
    "catch_up": False,
    # 0.5 counts down to zero exactly. With most other values a worker that hangs in C code is never killed.
    "guard_cycle": 0.5,
}

# The options that django-q and our checks compute with, and whether they may be None.
NUMBERS: Mapping[str, bool] = {
    "timeout": True,
    "workers": True,
    "retry": False,
    "guard_cycle": False,
    "save_limit": False,
}

# A cluster beside the project's own runs workflows only. It has nothing of that one: no schedules, no heartbeat in the
# project's cache, none of its limits.
SEPARATE: Mapping[str, Any] = {
    **OPTIONS,
    "name": NAME,
    "cache": "",
    "scheduler": False,
    "recycle": 500,
    "max_rss": None,
    "save_limit_per": None,
    "cached": False,
    "sync": False,
    "cpu_affinity": 0,
    "daemonize_workers": True,
}


def of_project() -> Mapping[str, Any] | None:
    """Return Q_CLUSTER, or None if the project has none."""
    found: Mapping[str, Any] | None = getattr(settings, "Q_CLUSTER", None)
    return found


def problem() -> str | None:
    """Return a sentence about a Q_CLUSTER for our broker that would stop django-q from being loaded; or None."""
    said: object = of_project()
    if said is None:
        return None
    if not isinstance(said, Mapping):
        return f"Q_CLUSTER is a {type(said).__name__}: it takes a dictionary."
    if said.get("broker_class") not in (BROKER, BROKER_CLASS):
        return None
    for name, may_be_none in NUMBERS.items():
        given = said.get(name, 0)
        if not (isinstance(given, int | float) or (may_be_none and given is None)):
            return f'Q_CLUSTER["{name}"] is {given!r}: it takes a number.'
    for name in ("cache", "orm"):
        if not isinstance(given := said.get(name, ""), str):
            return f'Q_CLUSTER["{name}"] is {given!r}: it takes a name.'
    return None


def runs_tasks() -> bool:
    """Return whether our cluster also runs the project's django-q2 tasks and schedules.

    It does if Q_CLUSTER names our broker, or if there is no Q_CLUSTER. Any other belongs to a cluster of the project's
    own, which we leave alone.
    """
    said = of_project()
    return said is None or names_our_broker(said.get("broker_class"))


def names_our_broker(path: object) -> bool:
    """Return whether the path names our broker or a subclass. Imports django-q only if it may be a subclass."""
    if not isinstance(path, str):
        return False
    if path in (BROKER, BROKER_CLASS):
        return True
    try:
        broker = import_string(path)
    except Exception:  # noqa: BLE001 - the project's module may raise anything, and django-q reports it
        return False
    return any(
        f"{one.__module__}.{one.__qualname__}" == BROKER_CLASS for one in getattr(broker, "__mro__", ())
    )
