"""Schedules as pages show them: when each runs next, and what it started last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from engine.declare.registry import workflows as registry
from engine.models import Instance, ScheduleRow
from engine.steer import schedules

NEXT = 5
SHOWN = 500


@dataclass(frozen=True, slots=True)
class Planned:
    """A planned time. `there` is that time in the schedule's time zone."""

    at: datetime
    there: str


@dataclass(frozen=True, slots=True)
class Entry:
    """A schedule. It has no key until a cluster has stored it."""

    row: ScheduleRow
    planned: tuple[Planned, ...]
    last: Instance | None

    @property
    def is_new(self) -> bool:
        return self.row.pk is None

    @property
    def is_paused(self) -> bool:
        return self.row.paused_at is not None

    @property
    def has_own_name(self) -> bool:
        return self.row.name != self.row.expression


def entries(workflow: str = "") -> list[Entry]:
    """Read the schedules of a workflow, or of all, with their next and last runs."""
    found = rows_of(workflow)
    now = schedules.clock()
    last = _last_of(found)
    return [Entry(row, _planned(row, now), last.get(row.last_instance_key or 0)) for row in found]


def rows_of(workflow: str = "") -> list[ScheduleRow]:
    """Read the schedules of a workflow, or of all: those in the code, and those that were."""
    rows = ScheduleRow.objects.filter(workflow=workflow) if workflow else ScheduleRow.objects.all()
    found = list(rows.defer("params").order_by("-is_declared", "workflow", "name")[:SHOWN])
    return found + _not_taken_over(found, [workflow] if workflow else list(registry))


def _not_taken_over(rows: Iterable[ScheduleRow], names: Iterable[str]) -> list[ScheduleRow]:
    known = {(row.workflow, row.name) for row in rows}
    declared = [(name, one) for name in names if name in registry for one in registry[name].schedules]
    return [
        ScheduleRow(workflow=name, name=one.name, expression=one.cron.expression, timezone=one.cron.timezone)
        for name, one in declared
        if (name, one.name) not in known
    ]


def _planned(row: ScheduleRow, now: datetime) -> tuple[Planned, ...]:
    try:
        zone = ZoneInfo(row.timezone)
        return tuple(Planned(at, _there(at, zone)) for at in schedules.upcoming(row, NEXT, now=now))
    except (KeyError, ValueError):  # a time zone that this machine does not have
        return ()


def _there(at: datetime, zone: ZoneInfo) -> str:
    return f"{at.astimezone(zone):%a %Y-%m-%d %H:%M}"


def _last_of(rows: Iterable[ScheduleRow]) -> Mapping[int, Instance]:
    keys = {row.last_instance_key for row in rows if row.last_instance_key is not None}
    wanted = ("key", "workflow", "id", "status", "waiting_for", "created_at")
    found = Instance.objects.only(*wanted).filter(key__in=keys)
    return {instance.key: instance for instance in (found if keys else ())}
