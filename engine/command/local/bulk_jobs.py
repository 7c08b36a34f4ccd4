"""Start bulk jobs, read and steer them."""

from __future__ import annotations

from typing import Any

from engine import bulk
from engine.command.bulk_jobs import arguments_of_action, awaited, confirm_start, names, pace_of
from engine.command.local.finding import origin
from engine.command.subcommand import Options
from engine.jobs import document
from engine.jobs.naming import named
from engine.status.documents import Document
from engine.status.gathering import database_now

PAGE = 200  # rows that are read at once


def preview(options: Options) -> Document:
    return {"preview": document.preview(bulk.preview(options["action"], **_chosen(options)))}


def start(options: Options) -> Document:
    confirm_start(options, lambda: preview(options)["preview"])
    how = _chosen(options) | pace_of(options)
    job = bulk.start(options["action"], id=options["id"], **how, **origin(options))
    return {"job": awaited(options, document.job(job), lambda name: document.job(bulk.get(name)))}


def _chosen(options: Options) -> dict[str, Any]:
    how = arguments_of_action(options)
    if options["query"] is not None:
        return {"query": options["query"], **how}
    return {"instances": named(names(options)), **how}


def listed(options: Options) -> Document:
    rows, before = list[Document](), options["before"]
    while True:
        page = document.page_of_jobs(min(options["limit"] - len(rows), PAGE), before)
        rows += page["jobs"]
        before = page["next_cursor"]
        if before is None or len(rows) >= options["limit"]:
            return {"jobs": rows, "older": before, "now": database_now()}


def show(options: Options) -> Document:
    job, outcome = bulk.get(options["job"]), None if options["outcome"] == "all" else options["outcome"]
    rows, after = list[Document](), options["after"]
    while True:
        page = document.page_of_items(job.id, outcome, min(options["limit"] - len(rows), PAGE), after)
        rows += page["items"]
        after = None if page["next_cursor"] is None else int(page["next_cursor"])
        if after is None or len(rows) >= options["limit"]:
            return {"job": document.job(job), "items": rows, "next": after}


def pause(options: Options) -> Document:
    return {"job": document.job(bulk.pause(options["job"], **origin(options)))}


def resume(options: Options) -> Document:
    return {"job": document.job(bulk.resume(options["job"], **origin(options)))}


def abort(options: Options) -> Document:
    return {"job": document.job(bulk.abort(options["job"], **origin(options)))}


def retry_failed(options: Options) -> Document:
    return {"job": document.job(bulk.retry_failed(options["job"], **origin(options)))}
