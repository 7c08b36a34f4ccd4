"""What a cluster does by the clock, as ordinary tasks in its workers: schedules every minute, retention every hour.

Both hang on a Schedule row of django-q's. Its scheduler looks for them every 30 seconds; our broker has it look when
one is due.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

from django.db import OperationalError, connection, transaction
from django_q.models import Schedule
from django_q.scheduler import scheduler

from engine.clock import database_time
from engine.models import ScheduleRow
from engine.registry import workflows
from engine.worker import schedules
from engine.worker.cluster_sql import TAKE_UPKEEP

logger = logging.getLogger("engine.cluster")

MINUTE = timedelta(minutes=1)

SCHEDULES = "reprise: schedules"
RETENTION = "reprise: retention"

EVERY_MINUTE = {
    "func": "engine.worker.schedules.fire_due",
    "schedule_type": Schedule.MINUTES,
    "minutes": 1,
}
EVERY_HOUR = {"func": "engine.retention.sweep", "schedule_type": Schedule.HOURLY, "minutes": None}

# Nobody asks for what they return, and one that was cut off is not begun again: its turn comes anyway.
OPTIONS = repr({"q_options": {"save": False, "ack_failure": True}})


def begin() -> None:
    """Start what came due while no cluster ran, and see to it that the next times come.

    Runs when a cluster starts, and when it has its database back: amid a loss of it nothing is to be done.
    """
    try:
        schedules.fire_due()
        _plan(database_time())
    except OperationalError as error:
        logger.warning(
            "The database was lost; what is due by the clock is seen to when it is back: %s", error
        )


def look() -> None:
    """Have django-q's scheduler queue what is due, and start what this cluster's schedules have planned.

    The task that is queued for those may go to a cluster that does not know their workflows. Nor is it queued where the
    scheduler stumbles over another row: it treats all of them in one transaction.
    """
    scheduler()
    due = ScheduleRow.objects.filter(next_at__lte=database_time(), workflow__in=[*workflows])
    if due.exists():
        schedules.fire_due()


def _plan(now: datetime) -> None:
    minute = now.replace(second=0, microsecond=0)
    is_scheduled = ScheduleRow.objects.filter(is_declared=True).exists()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(TAKE_UPKEEP)
        _keep(SCHEDULES, is_wanted=is_scheduled, next_run=minute + MINUTE, is_late_at=now, **EVERY_MINUTE)
        _keep(
            RETENTION, is_wanted=bool(workflows), next_run=minute + 60 * MINUTE, is_late_at=None, **EVERY_HOUR
        )


def _keep(
    name: str, *, is_wanted: bool, next_run: datetime, is_late_at: datetime | None, **values: Any
) -> None:
    """Have one row of this name, or none. What is late by `is_late_at` is not made up for."""
    rows = Schedule.objects.filter(name=name).order_by("pk")
    first = rows.first()
    if first is None:
        if is_wanted:
            Schedule.objects.create(name=name, kwargs=OPTIONS, next_run=next_run, **values)
        return
    rows.exclude(pk__in=[first.pk] if is_wanted else []).delete()
    same = rows.filter(pk=first.pk)
    same.update(kwargs=OPTIONS, **values)
    if is_late_at is not None:
        same.filter(next_run__lte=is_late_at).update(next_run=next_run)
