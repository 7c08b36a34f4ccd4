"""Read lists of instances and of workflows."""

from __future__ import annotations

from engine.command.list import place_of
from engine.command.local.finding import check_workflow
from engine.command.subcommand import Options
from engine.status import documents, search
from engine.status.catalog import workflows_of
from engine.status.documents import Document
from engine.status.gathering import database_now, facts_by_key, without_values
from engine.status.searching import filters, searching
from engine.status.searching.found import Found
from engine.values.identity import check_tags
from engine.values.query.order import NEWEST_FIRST
from engine.values.query.parsing import parsed


def listed(options: Options) -> Document:
    return _workflows() if options["what"] == "workflows" else _instances(options)


def _instances(options: Options) -> Document:
    found = _found(options)
    is_search = bool((options["query"] or "").strip()) or options["sort"] != NEWEST_FIRST
    rows = {row.key: row for row in without_values().defer(None).defer(*_VALUES).filter(key__in=found.keys)}
    shown = [rows[key] for key in found.keys if key in rows]
    facts = facts_by_key(shown)
    return {
        "instances": [documents.listed(row, facts[row.key]) for row in shown],
        "older": place_of(found.older or found.searched.go_on),
        "searched": documents.searched(found.searched) if is_search or found.searched.go_on else None,
        "now": facts[shown[0].key].now if shown else database_now(),
    }


_VALUES = ("params", "output", "error", "pause_reason")


def _found(options: Options) -> Found:
    if options["workflow"] is not None:
        check_workflow(options["workflow"])
    query = filters.filtered(
        parsed(options["query"] or ""),
        workflow=options["workflow"],
        statuses=options["status"],
        tag=None if options["tag"] is None else check_tags([options["tag"]])[0],
        q=None if options["q"] is None else options["q"].replace("\0", ""),
    )
    where = {"limit": options["limit"], "before": options["before"] or ""}
    return searching.search(query, workflows=None, sort=options["sort"], **where)


def _workflows() -> Document:
    names = search.workflow_names()
    now = database_now()
    return {
        "workflows": workflows_of(names, now),
        "counted_up_to": search.COUNTED,
        "last_start_at": search.last_start_at(),
        "now": now,
    }
