"""Read what the page shows. Each function is one section, and may fail without the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.db import connection

from engine.models import Instance, Worker
from engine.status import holds, last_hour
from engine.status.load import load
from engine.status.servers import STARTS_WITHIN, capacity_of
from engine.status.usual import long_steps
from engine.steer.schedules import clock
from studio.workers.clusters import CELLS, SILENT_AFTER, Cluster, Drain, Held, Process, alone_serves, clusters
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
    rows = _rows(now)
    shifts = [row for row in rows if row.role == "shift"]
    held = _held([row.worker_id for row in shifts], visible)
    found = clusters(processes(rows), {row.pk: held.get(row.worker_id, []) for row in shifts}, now=now)
    return found, not shifts and any(_is_starting(row, now) for row in rows)


def left_alone(target: Worker, visible: frozenset[str]) -> list[str]:
    """Return the workflows that no worker would serve if this worker or cluster drained."""
    now = clock()
    rows = _rows(now)
    leaving = [row.pk for row in rows if target.pk == row.pk or row.cluster_id == target.worker_id]
    return alone_serves(leaving, processes(rows), now=now, visible=visible)


def processes(rows: Sequence[Worker]) -> list[Process]:
    """Return the workers among these rows. Those of a cluster have its name and its drain."""
    of = {row.worker_id: row for row in rows if row.role == "cluster"}
    return [
        _process(row, None if row.cluster_id is None else of.get(row.cluster_id))
        for row in rows
        if row.role == "shift"
    ]


def read_queues(
    names: Sequence[str], found: Sequence[Cluster] | None
) -> tuple[list[Waiting], timedelta | None]:
    """Read the queues of workflows, and how long instances wait before they begin (the 95th percentile)."""
    read = load(names)
    queues = waiting(
        read.queues,
        now=clock(),
        capacity=capacity_of(names),
        served=None if found is None else _served(found),
        started=last_hour.started(names),
        pauses=holds.paused_workflows(names),
    )
    return queues, read.wait_p95


def _served(found: Sequence[Cluster]) -> Mapping[str, list[str]]:
    """Return the clusters of each workflow that have a worker which takes new instances of it."""
    served: dict[str, list[str]] = {}
    for cluster in found:
        taking = [line for line in cluster.lines if line.state in ("up", "late")]
        for name in {name for line in taking for name in line.process.workflows}:
            served.setdefault(name, []).append(cluster.name)
    return served


def _rows(now: datetime) -> list[Worker]:
    return list(Worker.objects.filter(seen_at__gt=now - FORGOTTEN_AFTER).order_by("key")[:MOST_WORKERS])


def _process(row: Worker, cluster: Worker | None) -> Process:
    return Process(
        key=row.pk,
        name=row.name,
        cluster=(cluster.cluster or cluster.name) if cluster is not None else row.cluster or row.name,
        slots=row.slots,
        held=row.held,
        workflows=tuple(row.workflows),
        started_at=row.started_at,
        seen_at=row.seen_at,
        code=row.code,
        memory=row.memory,
        cluster_key=None if cluster is None else cluster.pk,
        drain=_drain(row, cluster),
        code_since=None if cluster is None else cluster.started_at,
    )


def _drain(row: Worker, cluster: Worker | None) -> Drain | None:
    """Return the drain of a worker, or that of its cluster, which outlasts its own."""
    for one in (cluster, row):
        if one is not None and one.drained_at is not None:
            return Drain(one.drained_at, one.drained_by, one.drain_reason, one is not row)
    return None


def _is_starting(row: Worker, now: datetime) -> bool:
    return row.seen_at - row.started_at < STARTS_WITHIN and now - row.seen_at <= SILENT_AFTER


def _held(worker_ids: Sequence[int], visible: frozenset[str]) -> Mapping[int, list[Held]]:
    """Read what each worker holds, of each as many as cells are drawn. Of hidden instances nothing is told."""
    with connection.cursor() as cursor:
        cursor.execute(_HELD, [list(worker_ids), CELLS])
        keys = [(int(worker), int(key)) for worker, key in cursor]
    wanted = [key for _, key in keys]
    instances = {
        one.key: one for one in Instance.objects.only("key", "workflow", "id").filter(key__in=wanted)
    }
    long = long_steps([one.key for one in instances.values() if one.workflow in visible])
    found: dict[int, list[Held]] = {}
    for worker, key in keys:
        instance = instances.get(key)
        seen = instance if instance is not None and instance.workflow in visible else None
        found.setdefault(worker, []).append(Held(seen, long.get(key)))
    return found
