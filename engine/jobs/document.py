"""The JSON of bulk jobs, in which commands and the HTTP API show them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict

from engine.jobs import reading
from engine.jobs.previewing import Preview
from engine.jobs.reading import Item, Job
from engine.status.gathering import database_now
from engine.status.json_text import Document


def job(found: Job) -> Document:
    """Return a job, with the number of open items, and the seconds until its end."""
    ends_in = found.ends_in
    return {
        **asdict(found),
        "left": found.left,
        "ends_in": None if ends_in is None else ends_in.total_seconds(),
    }


def item(found: Item) -> Document:
    """Return an instance of a job, and what became of it."""
    return asdict(found)


def preview(found: Preview) -> Document:
    """Return what a job would do."""
    return asdict(found)


def page_of_jobs(limit: int, before: str | None = None, workflows: Collection[str] | None = None) -> Document:
    """Return the newest jobs, or those started before this one. `next_cursor` is the id of the last if more follow."""
    rows = reading.jobs(limit=limit + 1, before=before, workflows=workflows)
    jobs, has_more = [job(one) for one in rows[:limit]], len(rows) > limit
    return {"jobs": jobs, "next_cursor": jobs[-1]["id"] if has_more else None, "now": database_now()}


def page_of_items(id: str, outcome: str | None, limit: int, after: int = 0) -> Document:
    """Return items in order. `next_cursor` is the position of the last if more follow."""
    rows = reading.items(id, outcome=outcome, after=after, limit=limit + 1)
    items, has_more = [item(one) for one in rows[:limit]], len(rows) > limit
    return {"items": items, "next_cursor": str(items[-1]["position"]) if has_more else None}
