"""Bulk jobs in a Studio elsewhere."""

from __future__ import annotations

from typing import Any

from engine.command.bulk_jobs import arguments_of_action, awaited, confirm_start, names, pace_of
from engine.command.subcommand import Options
from engine.status.json_text import Document
from studio.client import Client

PAGE = 200  # rows that the API answers at once


def preview(client: Client, options: Options) -> Document:
    return {"preview": _preview(client, options)}


def start(client: Client, options: Options) -> Document:
    confirm_start(options, lambda: _preview(client, options))
    how = _chosen(options) | pace_of(options)
    job = client.start_bulk_job(options["action"], id=options["id"], reason=options["reason"], **how)
    return {"job": awaited(options, dict(job), lambda name: dict(client.bulk_job(name)))}


def _preview(client: Client, options: Options) -> Document:
    return dict(client.preview_bulk_job(options["action"], **_chosen(options)))


def _chosen(options: Options) -> dict[str, Any]:
    how = arguments_of_action(options)
    if options["query"] is not None:
        return {"query": options["query"], **how}
    return {"instances": names(options), **how}


def listed(client: Client, options: Options) -> Document:
    rows, cursor = list[Any](), options["before"]
    while True:
        page = client.bulk_jobs_page(limit=min(options["limit"] - len(rows), PAGE), cursor=cursor)
        rows += page["jobs"]
        cursor = page["next_cursor"]
        if cursor is None or len(rows) >= options["limit"]:
            return {"jobs": rows, "older": cursor, "now": page["now"]}


def show(client: Client, options: Options) -> Document:
    job, outcome = (
        client.bulk_job(options["job"]),
        None if options["outcome"] == "all" else options["outcome"],
    )
    rows, cursor = list[Any](), str(options["after"])
    while True:
        page = client.bulk_items_page(
            job["id"], outcome=outcome, limit=min(options["limit"] - len(rows), PAGE), cursor=cursor
        )
        rows += page["items"]
        after = page["next_cursor"]
        if after is None or len(rows) >= options["limit"]:
            return {"job": job, "items": rows, "next": None if after is None else int(after)}
        cursor = after


def pause(client: Client, options: Options) -> Document:
    return {"job": client.pause_bulk_job(options["job"], reason=options["reason"])}


def resume(client: Client, options: Options) -> Document:
    return {"job": client.resume_bulk_job(options["job"], reason=options["reason"])}


def abort(client: Client, options: Options) -> Document:
    return {"job": client.abort_bulk_job(options["job"], reason=options["reason"])}


def retry_failed(client: Client, options: Options) -> Document:
    return {"job": client.retry_failed_bulk_items(options["job"], reason=options["reason"])}
