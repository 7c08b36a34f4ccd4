"""Instances that a bulk job starts: how they are kept until then, and the part of a batch that starts them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db import connection

from engine.declare.registry import workflows
from engine.jobs.reasons import ID_IN_USE, UNKNOWN_WORKFLOW
from engine.models import BulkItem, BulkJob
from engine.steer import audit, launch
from engine.steer.launch import New

Told = tuple[int, str, str]
"""The position of an item, its outcome, and why, as a word."""

_STARTED = """
    UPDATE engine_bulk_item item SET instance_key = new.key, new = NULL
    FROM unnest(%s::integer[], %s::bigint[]) AS new (position, key)
    WHERE item.job_id = %s AND item.position = new.position
"""


def text_of(new: New) -> str:
    """Return what is to be started as the JSON that an item keeps."""
    at = None if new.starts_at is None else new.starts_at.isoformat()
    return json.dumps({"params": new.params, "tags": new.tags, "retention": new.retention, "at": at})


def start_items(job: BulkJob, positions: Sequence[int]) -> Iterator[Told]:
    """Start the items at these positions, in one statement. An id that is in use by now is skipped."""
    items = list(BulkItem.objects.filter(job_id=job.key, position__in=positions).order_by("position"))
    name = items[0].workflow if items else ""  # of all items of such a job
    if name not in workflows:
        yield from ((item.position, "failed", UNKNOWN_WORKFLOW) for item in items)
        return
    cause = audit.Cause(job.actor, job.user_key, job.reason)
    started = launch.insert(workflows[name], [_new_of(item) for item in items], cause)
    keys = {one.id: one.key for one in started}
    with connection.cursor() as cursor:
        cursor.execute(
            _STARTED, [[one.position for one in items], [keys.get(one.instance_id) for one in items], job.key]
        )
    for item in items:
        yield (
            (item.position, "done", "") if item.instance_id in keys else (item.position, "skipped", ID_IN_USE)
        )


def _new_of(item: BulkItem) -> New:
    kept: dict[str, Any] = json.loads(item.new or "{}")
    at = kept["at"] and datetime.fromisoformat(kept["at"])
    return New(item.instance_id, kept["params"], kept["tags"], kept["retention"], at)
