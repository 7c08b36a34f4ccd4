"""Read what the page shows. Each function is one section, and may fail without the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db import connection

from engine.models import Instance, Worker
from engine.status.load import load
from engine.status.servers import STARTS_WITHIN, capacity_of
from engine.status.usual import long_steps
from engine.steer.schedules import clock
from studio.workers.clusters import CELLS, SILENT_AFTER, Cluster, Held, Process, clusters
from studio.workers.waiting import Waiting, waiting

FORGOTTEN_AFTER = timedelta(hours=1)  # rows of killed workers stay until another cluster deletes them
MOST_WORKERS = 200

_HELD = """
SELECT worker.id, held.key FROM unnest(%s::integer[]) AS worker(id)
 CROSS JOIN LATERAL (SELECT key FROM engine_instance i WHERE i.owner = worker.id ORDER BY i.key LIMIT %s) AS held
"""


def read_clusters(visible: frozenset[str]) -> tuple[list[Cluster], bool]:
    """Read the workers, and whether a cluster is starting that has none yet."""
    now = clock()
    rows = list(Worker.objects.filter(seen_at__gt=now - FORGOTTEN_AFTER).order_by("key")[:MOST_WORKERS])
    shifts = [row for row in rows if row.role == "shift"]
    held = _held([row.worker_id for row in shifts], visible)
    found = clusters(
        [_process(row, rows) for row in shifts],
        {row.pk: held.get(row.worker_id, []) for row in shifts},
        now=now,
        visible=visible,
    )
    return found, not shifts and any(_is_starting(row, now) for row in rows)


def read_queues(
    names: Sequence[str], found: Sequence[Cluster] | None
) -> tuple[list[Waiting], timedelta | None]:
    """Read the queues of workflows, and how long instances wait before they begin (the 95th percentile)."""
    read = load(names)
    served = None if found is None else _served(found)
    queues = waiting(read.queues, now=clock(), capacity=capacity_of(names), served=served)
    return queues, read.wait_p95


def _served(found: Sequence[Cluster]) -> Mapping[str, list[str]]:
    """Return the clusters of each workflow that have a worker which takes new instances of it."""
    served: dict[str, list[str]] = {}
    for cluster in found:
        taking = [line for line in cluster.lines if line.state in ("up", "late")]
        for name in {name for line in taking for name in line.process.workflows}:
            served.setdefault(name, []).append(cluster.name)
    return served


def _process(row: Worker, rows: Sequence[Worker]) -> Process:
    return Process(
        key=row.pk,
        name=row.name,
        cluster=_cluster_of(row, rows),
        slots=row.slots,
        held=row.held,
        workflows=tuple(row.workflows),
        started_at=row.started_at,
        seen_at=row.seen_at,
    )


def _cluster_of(row: Worker, rows: Sequence[Worker]) -> str:
    host = row.name.rpartition(":")[0]
    own = [one for one in rows if one.role == "cluster" and one.name.rpartition(":")[0] == host]
    same = [one for one in own if set(one.workflows) == set(row.workflows)]
    return (same or own)[0].name if own else host


def _is_starting(row: Worker, now: datetime) -> bool:
    return row.seen_at - row.started_at < STARTS_WITHIN and now - row.seen_at <= SILENT_AFTER


def _held(worker_ids: Sequence[int], visible: frozenset[str]) -> Mapping[int, list[Held]]:
    """Read what each worker holds, of each as many as cells are drawn."""
    with connection.cursor() as cursor:
        cursor.execute(_HELD, [list(worker_ids), CELLS])
        keys = [(int(worker), int(key)) for worker, key in cursor]
    wanted = [key for _, key in keys]
    instances = {
        one.key: one for one in Instance.objects.only("key", "workflow", "id").filter(key__in=wanted)
    }
    long = long_steps(wanted)
    found: dict[int, list[Held]] = {}
    for worker, key in keys:
        instance = instances.get(key)
        seen = instance if instance is not None and instance.workflow in visible else None
        found.setdefault(worker, []).append(Held(seen, long.get(key)))
    return found
