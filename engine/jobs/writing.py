"""What the steering of a bulk job and the job itself write: its pause, and rows of the audit trail."""

from __future__ import annotations

from typing import Any

from engine.models import BulkJob, Instance
from engine.steer import audit, lifecycle, notify
from engine.steer.clock import database_time
from engine.values.system import BULK

PAUSE = "bulk-pause"


def instance_of(row: BulkJob) -> Instance:
    """Return the instance that works on the job."""
    found: Instance = Instance.objects.get(workflow=BULK, id=row.id)
    return found


def write(row: BulkJob, **changes: Any) -> None:
    BulkJob.objects.filter(key=row.key).update(**changes)
    notify.changed_elsewhere()


def pause(row: BulkJob, cause: audit.Cause) -> None:
    """Pause the job, whose row is locked, and then its instance."""
    write(row, paused_at=database_time())
    lifecycle.pause(instance_of(row), by=cause.actor or None, reason=cause.reason)


def note(verb: str, row: BulkJob, cause: audit.Cause, *, before: str = "", after: str = "") -> None:
    data = {"bulk": row.id, "action": str(row.action), "query": row.query, "total": row.total}
    audit.note(verb, "", cause, before=before, after=after, data=data)
