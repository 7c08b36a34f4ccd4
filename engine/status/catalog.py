"""Workflows with their schedules, as commands and the HTTP API list them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Count, F, QuerySet, Window
from django.db.models.functions import RowNumber

from engine.models import Instance, ScheduleRow
from engine.status import documents, search
from engine.status.documents import Document
from engine.status.servers import servers_of

# More than a workflow may declare: what is left out was declared in the past.
MOST_OF_A_WORKFLOW = 200


def workflows_of(names: Sequence[str], now: datetime) -> list[Document]:
    """Return these workflows: what the code says, their instances by status, their workers and schedules."""
    servers, counts = servers_of(names), search.counts_by_status(names)
    rows: list[Any] = list(_of_each(names))  # with `total`
    totals = {row.workflow: row.total for row in rows}
    schedules: dict[str, list[Document]] = defaultdict(list)
    for one in schedules_of(rows, now):
        schedules[one["workflow"]].append(one)
    return [
        documents.workflow(name, counts[name], servers[name])
        | {"schedules": schedules[name], "schedules_total": totals.get(name, 0)}
        for name in names
    ]


def schedules_of(rows: Iterable[ScheduleRow], now: datetime) -> list[Document]:
    """Return schedules with the last instances that they have started."""
    found = list(rows)
    columns = Instance.objects.only("key", "workflow", "id", "status", "created_at")
    last = columns.in_bulk([row.last_instance_key for row in found if row.last_instance_key is not None])
    return [documents.schedule(row, last.get(row.last_instance_key or 0), now) for row in found]


def _of_each(names: Sequence[str]) -> QuerySet[ScheduleRow]:
    """Return the schedules of workflows, declared ones first if a workflow has too many, in order of their names."""
    place = Window(RowNumber(), partition_by="workflow", order_by=[F("is_declared").desc(), F("name").asc()])
    rows = ScheduleRow.objects.filter(workflow__in=names)
    numbered = rows.annotate(place=place, total=Window(Count("*"), partition_by="workflow"))
    return numbered.filter(place__lte=MOST_OF_A_WORKFLOW).order_by("workflow", "name")
