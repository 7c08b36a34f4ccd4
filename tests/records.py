"""What an instance has recorded, in the shape in which tests compare it."""

from __future__ import annotations

from django.db import connection

from engine.models import Attempt, Instance, Log, Step
from engine.worker.database import worker_lock


def steps(instance: Instance) -> list[tuple[str, str, int, str]]:
    """Return kind, name, count and status of every step, by start."""
    rows = Step.objects.filter(instance=instance).order_by("seq")
    return list(rows.values_list("kind", "name", "count", "status"))


def statuses(instance: Instance) -> dict[str, str]:
    """Return the status of every step by its name, or name and count from the second occurrence on."""
    return {str(row): row.status for row in Step.objects.filter(instance=instance)}


def tree(instance: Instance) -> list[tuple[str, ...]]:
    """Return the path and the status of every step, nested ones included, by start."""
    rows = list(Step.objects.filter(instance=instance).order_by("seq"))
    paths: dict[int, tuple[str, ...]] = {0: ()}
    for row in rows:
        paths[row.seq] = (*paths[row.parent], str(row))
    return [(*paths[row.seq], row.status) for row in rows]


def step(instance: Instance, name: str, count: int = 1) -> Step:
    return Step.objects.get(instance=instance, name=name, count=count)


def attempts(instance: Instance, name: str, count: int = 1) -> list[Attempt]:
    """Return the attempts at a step, the first one first."""
    seq = step(instance, name, count).seq
    return list(Attempt.objects.filter(instance=instance, step_seq=seq).order_by("phase", "number"))


def outcomes(instance: Instance, name: str, count: int = 1) -> list[str]:
    """Return how each attempt at a step ended."""
    return [attempt.status for attempt in attempts(instance, name, count)]


def lines(instance: Instance) -> list[str]:
    """Return the messages of the log."""
    return list(Log.objects.filter(instance=instance).order_by("key").values_list("message", flat=True))


def crash(name: str = "test") -> None:
    """Cut a shift's connections: it loses at once what it holds, as if its process had died.

    It comes back as a new owner after a moment, knowing nothing of the one before. Its bodies run on unheard, which
    is worse than death.
    """
    worker_lock._taken_here.clear()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE %s",
            [f"reprise % {name}"],
        )
        [killed] = cursor.fetchone()
    assert killed > 0, "there was no shift to crash"
