"""Pause and resume: one instance, or all of them, one request each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from engine.command import text
from engine.command.bulk import confirm, require_one, require_reason
from engine.command.subcommand import Options
from engine.status.json_text import Document
from studio.client import Client, ConflictError, NotFoundError
from studio.client.answers import Listed, Schedule
from studio.remote.refusals import instance_named, require_workflow

STALE = "stale"  # the code of an instance that has changed since it was seen
UNDECIDED = "step_exhausted"  # the code of an instance that people have to decide about first
RUNNING = ("queued", "running", "waiting")  # open, and not paused
PAUSED = ("paused", "waiting_for_pause")


def pause(client: Client, options: Options) -> Document:
    if options["all"]:
        return _pause_all(client, options)
    require_one(options)
    at = options["instance"]
    with instance_named(client, at.workflow, at.id):
        return dict(client.pause(at.workflow, at.id, reason=options["reason"]))


def resume(client: Client, options: Options) -> Document:
    if options["all"]:
        return _resume_all(client, options)
    require_one(options)
    at = options["instance"]
    with instance_named(client, at.workflow, at.id):
        return dict(client.resume(at.workflow, at.id, reason=options["reason"]))


def _pause_all(client: Client, options: Options) -> Document:
    require_reason(options)
    rows = _rows(client, options, RUNNING)
    timetable = list(_schedules(client, options)) if options["schedules"] else []
    also = f" and {text.count(len(timetable), 'schedule')}" if options["schedules"] else ""
    confirm(options, "Pause", f"{text.count(len(rows), 'open instance')}{also}")
    paused = _pause_schedules(client, timetable, options)
    counts = _pause_each(client, rows, options)
    return {
        "paused": counts["paused"],
        "waiting_for_pause": counts["waiting_for_pause"],
        "paused_schedules": paused,
    }


def _pause_each(client: Client, rows: Iterable[Listed], options: Options) -> Counter[str]:
    """Count those that this paused, by status after it."""
    counts = Counter[str]()
    for row in rows:
        try:
            steered = client.pause(row["workflow"], row["id"], reason=options["reason"])
        except NotFoundError:  # deleted meanwhile
            continue
        counts[steered["instance"]["status"]] += steered["has_changed"]
    return counts


def _resume_all(client: Client, options: Options) -> Document:
    seen = [(row, _paused_by_people(client, row)) for row in _rows(client, options, PAUSED)]
    rows = [(row, etag) for row, etag in seen if etag is not None]
    confirm(options, "Resume", f"up to {text.count(len(rows), 'paused instance')}")
    return {"resumed": sum(_resume_as_seen(client, row, etag, options) for row, etag in rows)}


def _resume_as_seen(client: Client, row: Listed, etag: str | None, options: Options) -> bool:
    """Resume it, and return whether this did; if it has changed since it was seen, look at it again first."""
    paused_for, reason = options["paused_for"], options["reason"]
    while etag is not None and (paused_for is None or _last_reason(client, row) == paused_for):
        try:
            resumed = client.resume(row["workflow"], row["id"], reason=reason, if_match=etag)
        except NotFoundError:  # deleted meanwhile
            return False
        except ConflictError as error:
            if error.code == UNDECIDED:
                return False
            if error.code != STALE:
                raise
            etag = _paused_by_people(client, row)
        else:
            return resumed["has_changed"]
    return False


def _rows(client: Client, options: Options, statuses: Iterable[str]) -> list[Listed]:
    """Return the instances, oldest first."""
    names = options["workflow"] or (None,)
    for name in options["workflow"] or ():
        require_workflow(client, name)
    rows = [row for name in names for row in client.instances(workflow=name, status=tuple(statuses))]
    return sorted(rows, key=lambda row: row["created_at"])


def _paused_by_people(client: Client, row: Listed) -> str | None:
    """Return the version of an instance that people paused, else None."""
    try:
        found = client.instance(row["workflow"], row["id"], limit=1)
    except NotFoundError:  # deleted meanwhile
        return None
    instance = found["instance"]
    is_theirs = instance["status"] in PAUSED and instance["pause_reason"] is None
    return found["etag"] if is_theirs else None


def _last_reason(client: Client, row: Listed) -> str | None:
    """Return the reason of its last pause."""
    done = (one for one in client.actions(row["workflow"], row["id"]) if one["outcome"] == "done")
    return next((one["reason"] for one in done if one["verb"] == "pause"), None)


def _schedules(client: Client, options: Options) -> Iterator[Schedule]:
    names = options["workflow"]
    for row in client.schedules():
        if row["is_declared"] and row["paused_at"] is None and (not names or row["workflow"] in names):
            yield row


def _pause_schedules(client: Client, rows: Iterable[Schedule], options: Options) -> int:
    count = 0
    for row in rows:
        try:
            client.pause_schedule(row["workflow"], row["name"], reason=options["reason"])
        except NotFoundError:
            continue
        count += 1
    return count
