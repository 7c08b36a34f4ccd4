"""Start what schedules have planned: once for each planned moment, however many processes look, and across crashes.

The front shift runs `fire_due` when something is due (`engine.worker.periodic`). Others run it if that one is stuck or
gone, so several may run it at once. Each schedule has its own transaction, which locks its row, starts the instance
and advances `next_at`: all or nothing. The instance's id is derived from the schedule and the planned moment, so there
cannot be a second one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import Error, transaction

from engine.declare.params import FromStore
from engine.declare.registry import Workflow, workflows
from engine.declare.schedules import DeclaredSchedule
from engine.declare.secrets import decrypted
from engine.models import Instance, ScheduleRow
from engine.steer import audit, clusters, launch
from engine.steer.clock import database_time
from engine.steer.schedules import REFUSED, cron_of, starter
from engine.values.error_record import cut
from engine.values.errors import RepriseError, SecretKeyError, UnknownWorkflowError
from engine.values.identity import scheduled_id
from engine.values.serialization import decode, encode

logger = logging.getLogger("engine.schedules")

Key = tuple[str, str]  # workflow and name


def fire_due(now: datetime | None = None) -> int:
    """Update the rows to what the code declares, then start what is due. Return the number of started instances.

    After downtime, each schedule starts one instance, for the latest moment; `last_missed` counts the others. A refused
    start is recorded in `last_error` and the audit trail, and the schedule continues with the next moment. An instance
    with the planned id that this schedule did not start is recorded in the same way; the planned instance then starts
    with another id.
    """
    now = now or database_time()
    started = sync(now)
    due = ScheduleRow.objects.filter(next_at__lte=now, workflow__in=[*workflows]).order_by("next_at", "key")
    return started + sum(_safely(key, _fire, now) for key in due.values_list("key", flat=True))


def sync(now: datetime | None = None) -> int:
    """Update the rows to what the code declares: new schedules, changed ones, and those no longer declared.

    A change of the times plans again from now; a moment that is due by the old times and also planned by the new ones
    is not lost: its instance is started. Rows of workflows that this code does not declare are not changed while
    another cluster declares them. Return the number of started instances.
    """
    now = now or database_time()
    started = 0
    declared = {(one.name, plan.name): plan for one in workflows.values() for plan in one.schedules}
    rows = {(row.workflow, row.name): row for row in ScheduleRow.objects.all()}
    for key, plan in declared.items():
        if key not in rows:
            _add(key, plan, now)
        elif changes := _changes(rows[key], plan, now):
            shared = _shared(rows[key], plan, changes, now)
            if shared is None:
                _change(rows[key], changes)
            else:
                started += _safely(rows[key].key, _fire_shared, rows[key], changes, shared)
    for row in _gone(rows, declared, now):
        _change(row, _gone_changes(row))
    return started


def _add(key: Key, plan: DeclaredSchedule, now: datetime) -> None:
    workflow, name = key
    # Another cluster may add it at the same time.
    row = ScheduleRow(workflow=workflow, name=name, next_at=plan.cron.after(now), **_said(plan))
    ScheduleRow.objects.bulk_create([row], ignore_conflicts=True)


def _said(plan: DeclaredSchedule) -> dict[str, Any]:
    cron = plan.cron
    return {"expression": cron.expression, "timezone": cron.timezone, "params": decode(plan.params)}


def _changes(row: ScheduleRow, plan: DeclaredSchedule, now: datetime) -> dict[str, Any]:
    changes = {field: value for field, value in _said(plan).items() if _differs(getattr(row, field), value)}
    is_other_time = "expression" in changes or "timezone" in changes
    if not row.is_declared or is_other_time:
        # What is due only by the old times is not started.
        changes |= {"is_declared": True, "next_at": plan.cron.after(now), "last_error": ""}
    if row.paused_at is not None:
        changes.pop("next_at", None)
    return changes


def _differs(stored: object, said: object) -> bool:
    try:
        # As texts, because in Python 1, 1.0 and True are equal; decrypted, because a secret encrypted again is another
        # text.
        return encode(decrypted(stored)) != encode(decrypted(said))
    except SecretKeyError:  # its key is gone, and the code has the value
        return True


def _shared(
    row: ScheduleRow, plan: DeclaredSchedule, changes: Mapping[str, Any], now: datetime
) -> datetime | None:
    """Return the latest moment that is due by the old times and also planned by the new ones."""
    if "next_at" not in changes or row.next_at is None or row.next_at > now:
        return None
    return cron_of(row).latest_shared(plan.cron, row.next_at, now)


def _fire_shared(key: int, row: ScheduleRow, changes: Mapping[str, Any], planned: datetime) -> bool:
    """Start the instance of that moment and write what the code declares. Return whether it was started."""
    same = ScheduleRow.objects.select_for_update(skip_locked=True, no_key=True)
    found = same.filter(key=key, next_at=row.next_at, paused_at=None, expression=row.expression).first()
    if found is None:
        return False
    for field, value in changes.items():
        setattr(found, field, value)
    return _record(found, planned, missed=0)


def _change(row: ScheduleRow, changes: Mapping[str, Any]) -> None:
    """Write what the code declares, unless the row was paused or advanced since it was read."""
    same = ScheduleRow.objects.filter(key=row.key, next_at=row.next_at, is_declared=row.is_declared)
    same.filter(paused_at=row.paused_at).update(**changes)


def _gone(
    rows: Mapping[Key, ScheduleRow], declared: Mapping[Key, DeclaredSchedule], now: datetime
) -> Iterable[ScheduleRow]:
    left = [row for key, row in rows.items() if row.is_declared and key not in declared]
    strange = {row.workflow for row in left} - set(workflows)
    strange -= clusters.declared(strange, now)
    return [row for row in left if row.workflow in workflows or row.workflow in strange]


def _gone_changes(row: ScheduleRow) -> dict[str, Any]:
    changes: dict[str, Any] = {"is_declared": False, "next_at": None}
    if row.workflow not in workflows:
        changes["last_error"] = str(UnknownWorkflowError(row.workflow))
    return changes


def _safely(key: int, fire: Callable[..., bool], *about: Any) -> bool:
    try:
        with transaction.atomic():
            return fire(key, *about)
    except Error:
        # A schedule that the database refuses must not block the others; it stays due.
        logger.exception("Schedule %s could not be processed; it is tried again in a minute.", key)
        return False


def _fire(key: int, now: datetime) -> bool:
    """Start what one schedule has planned, unless its row is locked. Return whether it was started."""
    due = ScheduleRow.objects.select_for_update(skip_locked=True, no_key=True)
    row = due.filter(key=key, next_at__lte=now).first()
    if row is None or row.next_at is None:
        return False
    planned, missed = cron_of(row).latest(row.next_at, now)
    row.next_at = cron_of(row).after(now)
    return _record(row, planned, missed=missed)


def _record(row: ScheduleRow, planned: datetime, *, missed: int) -> bool:
    """Start the instance of a planned moment and write the row. Return whether it was started."""
    instance, error = _start(row, workflows[row.workflow], planned)
    row.last_planned_at, row.last_missed, row.last_error = planned, missed, error
    row.last_instance_key = None if instance is None else instance.key
    row.save()
    return instance is not None


def _start(row: ScheduleRow, workflow: Workflow[Any, Any], planned: datetime) -> tuple[Instance | None, str]:
    chosen = scheduled_id(row.workflow, row.name, planned, secret=settings.SECRET_KEY)
    by = starter(row)
    try:
        params = FromStore(row.params)
        instance, is_new = launch.get_or_start(workflow, chosen, params, by=by)
        if is_new or instance.started_by == by:
            return instance, ""
        # Another instance with that id must not prevent the planned one.
        instance = launch.start(workflow, params, by=by)
    except RepriseError as problem:
        return None, _told(row, planned, str(problem))
    taken = f'An instance that this schedule did not start has the planned id "{chosen}".'
    return instance, _told(row, planned, f'{taken} The planned one was started as "{instance.id}".')


def _told(row: ScheduleRow, planned: datetime, problem: str) -> str:
    cause = audit.Cause.of(starter(row), cut(problem, audit.MAX_REASON))
    data = {"schedule": row.name, "planned_at": planned.isoformat()}
    audit.note(REFUSED, row.workflow, cause, outcome="denied", data=data)
    return problem
