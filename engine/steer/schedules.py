"""Pause and resume schedules, run one now, and list when it fires next.

A schedule is an `engine.models.ScheduleRow`. A cluster writes a row for each schedule that its code declares, and
starts what is due (`engine.worker.schedules`). Each function here is one transaction, or part of the caller's, and
adds a row to the audit trail whose `data` names the schedule.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from engine.declare.params import FromStore
from engine.declare.registry import workflows
from engine.models import Instance, ScheduleRow
from engine.steer import audit, launch
from engine.steer.clock import database_time as clock
from engine.values.cron import Cron
from engine.values.errors import InstanceExistsError, ScheduleNotDeclaredError, ScheduleNotFoundError
from engine.values.identity import new_instance_id

PAUSE = "schedule-pause"
RESUME = "schedule-resume"
RUN = "schedule-run"
REFUSED = "schedule-refused"

__all__ = ["clock", "pause", "resume", "run_now", "upcoming"]


def pause(schedule: ScheduleRow, *, by: object = None, reason: str = "") -> ScheduleRow:
    """Pause the schedule until it is resumed. Does nothing if it is already paused.

    Returns the schedule in its new state. Raises ScheduleNotFoundError if its row is gone.
    """
    cause = audit.Cause.of(by, reason)
    with transaction.atomic():
        row = _lock(schedule)
        if row.paused_at is None:
            changes = {"paused_at": clock(), "paused_by": cause.actor, "next_at": None}
            _write(row, changes, PAUSE, cause, before="active", after="paused")
        schedule.refresh_from_db()
        return schedule


def resume(schedule: ScheduleRow, *, by: object = None, reason: str = "") -> ScheduleRow:
    """Continue with the next planned time. Missed times are skipped.

    Does nothing if it is not paused. Returns the schedule in its new state. Raises ScheduleNotFoundError if its row is
    gone.
    """
    cause = audit.Cause.of(by, reason)
    with transaction.atomic():
        row = _lock(schedule)
        if row.paused_at is not None:
            next_at = cron_of(row).after(clock()) if row.is_declared else None
            changes = {"paused_at": None, "paused_by": "", "next_at": next_at}
            _write(row, changes, RESUME, cause, before="paused", after="active")
        schedule.refresh_from_db()
        return schedule


def run_now(schedule: ScheduleRow, *, id: str | None = None, by: object = None, reason: str = "") -> Instance:
    """Start an instance with the schedule's params, in addition to the planned ones; also while it is paused.

    With an `id`, repeated calls start it once. Raises InstanceExistsError if an instance that the schedule did not
    start has that id.

    `started_by` of the instance is the schedule, and the audit trail records who ran it. Raises
    ScheduleNotDeclaredError if the code no longer declares it, UnknownWorkflowError, ScheduleNotFoundError, and
    InvalidParamsError if the workflow now takes other params; then nothing is started.
    """
    cause = audit.Cause.of(by, reason)
    with transaction.atomic():
        row = _lock(schedule)
        if not row.is_declared:
            raise ScheduleNotDeclaredError(row.workflow, row.name)
        chosen = new_instance_id() if id is None else id
        params = FromStore(row.params)
        instance, is_new = launch.get_or_start(workflows[row.workflow], chosen, params, by=starter(row))
        if not is_new and instance.started_by != starter(row):
            raise InstanceExistsError(row.workflow, chosen)
        if is_new:
            ScheduleRow.objects.filter(key=row.key).update(last_instance_key=instance.key)
            audit.write(RUN, [instance], cause, data={"schedule": row.name})
        return instance


def upcoming(schedule: ScheduleRow, count: int = 5, *, now: datetime | None = None) -> list[datetime]:
    """Return the next planned moments in UTC; none for a schedule that is paused or no longer declared.

    The first is `next_at`, which is in the past until a cluster has started what is due. The others are after `now`,
    by default the database's time.
    """
    if schedule.next_at is None or count < 1:
        return []
    after = max(schedule.next_at, now or clock())
    return [schedule.next_at, *cron_of(schedule).upcoming(after, count - 1)]


def cron_of(schedule: ScheduleRow) -> Cron:
    """Return the cron expression and time zone of the schedule's row."""
    return Cron(schedule.expression, schedule.timezone)


def starter(schedule: ScheduleRow) -> str:
    """Return `started_by` of the instances that the schedule starts."""
    return f"schedule {schedule.name}"


def _lock(schedule: ScheduleRow) -> ScheduleRow:
    row = ScheduleRow.objects.select_for_update(no_key=True).filter(key=schedule.key).first()
    if row is None:
        raise ScheduleNotFoundError(schedule.workflow, schedule.name)
    return row


def _write(
    row: ScheduleRow, changes: dict[str, Any], verb: str, cause: audit.Cause, *, before: str, after: str
) -> None:
    ScheduleRow.objects.filter(key=row.key).update(**changes)
    data = {"schedule": row.name}
    audit.note(verb, row.workflow, cause, before=before, after=after, data=data)
