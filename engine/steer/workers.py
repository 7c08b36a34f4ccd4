"""List workers, and drain and resume them.

A worker that drains claims nothing new, lets its running bodies end, and hands back what it holds. No attempt is
cancelled or spent. It stays, until it is resumed or stopped. Each function here is one transaction, or part of the
caller's; workers learn of it by a notification, or with their next heartbeat, after at most five seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import Q

from engine.models import Worker
from engine.steer import audit, notify, sql
from engine.steer.clock import ClockTimestamp
from engine.values.errors import WorkerNotFoundError

DRAIN = "worker-drain"
RESUME = "worker-resume"
REFUSED = "worker-refused"

# A silent worker may be gone. Its row stays for a minute.
ALIVE_FOR = timedelta(seconds=20)

__all__ = ["Drained", "drain", "drain_of", "resume", "running"]


@dataclass(frozen=True, slots=True)
class Drained:
    """A worker or cluster in its new state, and what the person who drained or resumed it should know."""

    worker: Worker
    """The row of the worker or cluster, as it is now."""
    warnings: Sequence[str] = field(default=())
    """Sentences: which workflows no other worker serves, or why a resumed worker still drains."""


def running() -> list[Worker]:
    """Return the clusters and shifts seen in the last 20 seconds, the clusters first."""
    rows = Worker.objects.filter(seen_at__gt=ClockTimestamp() - ALIVE_FOR)
    return [*rows.order_by("role", "name", "worker_id")]


def drain(name: str, *, by: object = None, reason: str = "") -> Drained:
    """Let a worker, or all workers of a cluster and those that replace them, claim nothing more.

    `name` is the host and the process id, such as `web-1:4711`. Does nothing if it is already drained. The warnings
    name the workflows that no other worker serves. Raises WorkerNotFoundError.
    """
    cause = audit.Cause.of(by, reason)
    with transaction.atomic():
        row = _lock(name)
        if row.drained_at is None:
            Worker.objects.filter(key=row.key).update(
                drained_at=ClockTimestamp(), drained_by=cause.actor, drain_reason=cause.reason
            )
            _tell(DRAIN, row, cause, before="active", after="drained")
        row.refresh_from_db()
        return Drained(row, tuple(_without_another(row)))


def resume(name: str, *, by: object = None, reason: str = "") -> Drained:
    """Let a drained worker, or the workers of a drained cluster, claim again.

    Does nothing if it is not drained. A worker continues to drain while its cluster does; a warning says so. Raises
    WorkerNotFoundError.
    """
    cause = audit.Cause.of(by, reason)
    with transaction.atomic():
        row = _lock(name)
        if row.drained_at is not None:
            Worker.objects.filter(key=row.key).update(drained_at=None, drained_by="", drain_reason="")
            _tell(RESUME, row, cause, before="drained", after="active")
        row.refresh_from_db()
        return Drained(row, tuple(_still_drained(row)))


def drain_of(row: Worker, among: Iterable[Worker]) -> Worker | None:
    """Return the row with the drain of a worker: its own or, among these, that of its cluster. None if it claims."""
    if row.drained_at is not None:
        return row
    if row.cluster_id is None:
        return None
    clusters = (one for one in among if one.worker_id == row.cluster_id and one.drained_at is not None)
    return next(clusters, None)


def _lock(name: str) -> Worker:
    """Lock the row of the worker with this name that was seen last."""
    rows = Worker.objects.select_for_update(no_key=True).filter(name=name.replace("\0", ""))
    row = rows.order_by("-seen_at").first()
    if row is None:
        known = Worker.objects.order_by("name").values_list("name", flat=True)
        raise WorkerNotFoundError(name, [*known])
    return row


def _tell(verb: str, row: Worker, cause: audit.Cause, *, before: str, after: str) -> None:
    audit.note(verb, "", cause, before=before, after=after, data={"worker": row.name, "role": row.role})
    with connection.cursor() as cursor:
        channels = [notify.WAKE, notify.CHANGED]
        cursor.execute(sql.NOTIFY, [channels, [notify.DRAIN, notify.NO_INSTANCE]])


def _without_another(row: Worker) -> Iterable[str]:
    """Return a sentence about the workflows that no other worker takes."""
    living = [*Worker.objects.filter(seen_at__gt=ClockTimestamp() - ALIVE_FOR).exclude(key=row.key)]
    shifts = [one for one in living if one.role == "shift" and one.cluster_id != row.worker_id]
    served = {name for one in shifts if drain_of(one, [*living, row]) is None for name in one.workflows}
    alone = sorted({*row.workflows} - served)
    if alone:
        names = ", ".join(f'"{name}"' for name in alone[:3])
        more = f" and {len(alone) - 3} more workflows" if len(alone) > 3 else ""
        yield f"No other worker serves {names}{more}. Instances wait until one does."


def _still_drained(row: Worker) -> Iterable[str]:
    cluster = Worker.objects.filter(
        Q(worker_id=row.cluster_id, drained_at__isnull=False), ~Q(key=row.key)
    ).first()
    if cluster is not None:
        yield f"{row.name} still drains, because its cluster does. Resume {cluster.name}."
