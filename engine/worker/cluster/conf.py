"""django-q's settings, completed with our options, or replaced by them in the processes of a separate cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django_q.conf import Conf
from django_q.conf import logger as django_q_logger
from django_q.signals import post_execute, post_execute_in_worker, post_spawn, pre_execute

from engine.configuration import setting
from engine.worker.cluster import options

SIGNALS = (post_execute, post_execute_in_worker, post_spawn, pre_execute)

CONNECTION_SECONDS = 600


@dataclass(frozen=True)
class Project:
    """What a separate cluster has replaced: the attributes of django-q's settings, and the receivers of its signals."""

    attributes: Mapping[str, Any]
    receivers: tuple[list[Any], ...]


_project: Project | None = None


def complete() -> None:
    """Set every option that the project's Q_CLUSTER leaves out to our value."""
    missing = {name: value for name, value in options.OPTIONS.items() if name not in Conf.conf}
    if options.of_project() is None:
        missing["name"] = options.NAME
    _set(_attributes(missing))


def separate() -> None:
    """Configure this process for a cluster that runs workflows only, whatever Q_CLUSTER says.

    Receivers of django-q's signals belong to the project's own cluster and are not called in this one.
    """
    global _project
    ours = _attributes(options.SEPARATE)
    kept = {name: getattr(Conf, name) for name in (*ours, "WORKERS", "QUEUE_LIMIT")}
    _project = Project(kept, tuple(signal.receivers for signal in SIGNALS))
    _set(ours)
    _set_receivers(tuple([] for _ in SIGNALS))


def is_separate() -> bool:
    """Return whether this process belongs to a cluster that runs workflows only."""
    return _project is not None


@contextmanager
def as_in_project() -> Iterator[None]:
    """Run the block with the project's own settings of django-q: tasks that bodies queue go to its own cluster."""
    if _project is None:
        yield
        return
    ours = {name: getattr(Conf, name) for name in _project.attributes}
    receivers = tuple(signal.receivers for signal in SIGNALS)
    _set(_project.attributes)
    _set_receivers(_project.receivers)
    try:
        yield
    finally:
        _set(ours)
        _set_receivers(receivers)


def prepare_process(*, workers: int | None = None) -> None:
    """Set what only the processes of a cluster need. `workers` run workflows; one more runs tasks, if it has any."""
    said = {} if is_separate() else Conf.conf
    if workers is not None or "workers" not in said:
        Conf.WORKERS = (workers or setting("WORKERS")) + (not is_separate())
    # Tasks queued in memory are lost for `retry` seconds when the cluster is killed, so queue few.
    if "queue_limit" not in said:
        Conf.QUEUE_LIMIT = Conf.WORKERS
    # INFO would log the start and end of every shift.
    if "log_level" not in said:
        django_q_logger.setLevel("WARNING")


def keep_connections() -> None:
    """Keep database connections for ten minutes, where the settings have each request open its own."""
    database = connections.settings[DEFAULT_DB_ALIAS]
    if database["CONN_MAX_AGE"] == 0 and not database["OPTIONS"].get("pool"):
        database["CONN_MAX_AGE"] = CONNECTION_SECONDS
        database["CONN_HEALTH_CHECKS"] = True


def _attributes(said: Mapping[str, Any]) -> dict[str, Any]:
    found = {name.upper(): value for name, value in said.items() if name != "name"}
    if "name" in said:
        name = said["name"]
        found |= {"PREFIX": name, "CLUSTER_NAME": name, "Q_STAT": f"django_q:{name}:cluster"}
    return found


def _set(attributes: Mapping[str, Any]) -> None:
    for name, value in attributes.items():
        setattr(Conf, name, value)


def _set_receivers(receivers: tuple[list[Any], ...]) -> None:
    for signal, found in zip(SIGNALS, receivers, strict=True):
        signal.receivers = found
