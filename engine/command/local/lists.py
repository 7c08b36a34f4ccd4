"""Read lists of instances and of workflows."""

from __future__ import annotations

from django.db.models import QuerySet

from engine.command.list import GROUPS
from engine.command.local.finding import check_workflow
from engine.command.subcommand import Options
from engine.models import Instance
from engine.status import documents, search
from engine.status.catalog import workflows_of
from engine.status.documents import Document
from engine.status.gathering import database_now, facts_by_key, without_values
from engine.values.identity import check_tags


def listed(options: Options) -> Document:
    return _workflows() if options["what"] == "workflows" else _instances(options)


def _instances(options: Options) -> Document:
    limit = options["limit"]
    rows = list(_matching(options).order_by("-key")[: limit + 1])
    older = rows[limit - 1].key if len(rows) > limit else None
    rows = rows[:limit]
    facts = facts_by_key(rows)
    return {
        "instances": [documents.listed(row, facts[row.key]) for row in rows],
        "older": older,
        "now": facts[rows[0].key].now if rows else database_now(),
    }


def _matching(options: Options) -> QuerySet[Instance]:
    rows = without_values().defer(None).defer("params", "output", "error", "pause_reason")
    if options["workflow"] is not None:
        check_workflow(options["workflow"])
        rows = rows.filter(workflow=options["workflow"])
    if options["status"]:
        chosen = [status for one in options["status"] for status in GROUPS.get(one, [one])]
        rows = rows.filter(status__in=chosen)
    if options["tag"] is not None:
        rows = rows.filter(tags__contains=check_tags([options["tag"]]))
    if options["q"] is not None:
        rows = search.by_id(rows, options["q"].replace("\0", ""))
    return rows if options["before"] is None else rows.filter(key__lt=options["before"])


def _workflows() -> Document:
    names = search.workflow_names()
    now = database_now()
    return {
        "workflows": workflows_of(names, now),
        "counted_up_to": search.COUNTED,
        "last_start_at": search.last_start_at(),
        "now": now,
    }
