"""Subcommands that read."""

from __future__ import annotations

from typing import Any, cast

from engine.command.health import limits_of
from engine.command.list import place_of
from engine.command.subcommand import Options
from engine.status.json_text import Document
from engine.values.query.order import Place
from studio.client import Client
from studio.remote.refusals import instance_named, require_workflow

PAGE = 200  # rows that the API answers at once


def listed(client: Client, options: Options) -> Document:
    return dict(client.workflows()) if options["what"] == "workflows" else _instances(client, options)


def _instances(client: Client, options: Options) -> Document:
    rows: list[Any] = []
    cursor = None if options["before"] is None else str(options["before"])
    while True:
        page = client.instances_page(
            workflow=options["workflow"],
            status=options["status"],
            tag=options["tag"],
            q=options["q"],
            query=options["query"],
            sort=cast(Any, str(options["sort"])),
            limit=min(options["limit"] - len(rows), PAGE),
            cursor=cursor,
        )
        rows += page["instances"]
        cursor = page["next_cursor"]
        searched = page.get("searched")  # a Studio of an earlier version has none
        is_cut_short = searched and searched["rows"] is not None and Place.of(cursor or "") is None
        if cursor is None or len(rows) >= options["limit"] or is_cut_short:
            break
    if not rows and options["workflow"] is not None:
        require_workflow(client, options["workflow"])
    return {
        "instances": rows,
        "older": place_of(cursor or ""),
        "searched": page.get("searched"),
        "now": page["now"],
    }


def show(client: Client, options: Options) -> Document:
    at = options["instance"]
    with instance_named(client, at.workflow, at.id):
        found = client.instance(
            at.workflow,
            at.id,
            generation=options["generation"],
            full=options["full"],
            limit=options["limit"],
            hide_done_items=not (options["full"] or options["json"]),
        )
    return {key: value for key, value in found.items() if key != "etag"}


def events(client: Client, options: Options) -> Document:
    at, rows, cursor = options["instance"], list[Any](), None
    with instance_named(client, at.workflow, at.id):
        while True:
            limit = min(options["limit"] - len(rows), PAGE)
            page = client.events_page(at.workflow, at.id, state=options["state"], limit=limit, cursor=cursor)
            rows += page["events"]
            cursor = page["next_cursor"]
            if cursor is None or len(rows) >= options["limit"]:
                break
    if not options["full"]:
        rows = [{key: value for key, value in row.items() if key != "payload"} for row in rows]
    return {"events": rows, "total": page["total"], "now": page["now"]}


def schedules(client: Client, options: Options) -> Document:
    name = options["workflow"]
    page = client.schedules_page(workflow=name)
    rows = page["schedules"]
    while page["next_cursor"] is not None:
        page = client.schedules_page(workflow=name, cursor=page["next_cursor"])
        rows += page["schedules"]
    if not rows and name is not None:
        require_workflow(client, name)
    return {"schedules": rows, "now": page["now"]}


def workers(client: Client, options: Options) -> Document:
    return dict(client.workers_now())


def health(client: Client, options: Options) -> Document:
    limits = limits_of(options)
    found = client.health(
        max_due=limits.max_due.total_seconds(), min_workers=limits.min_workers, max_paused=limits.max_paused
    )
    return dict(found)
