"""Schedules."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from studio.client.answers.instances import Relation
from studio.client.answers.values import JSON


class Schedule(TypedDict):
    """A schedule and when it fires."""

    workflow: str
    name: str
    expression: str
    timezone: str
    params: JSON
    is_declared: bool
    paused_at: datetime | None
    paused_by: str
    next_at: datetime | None
    upcoming: list[datetime]
    last_planned_at: datetime | None
    last_started_at: datetime | None
    last_instance: Relation | None
    last_missed: int | None
    last_error: str | None


class SchedulesPage(TypedDict):
    """A page of the schedules of the workflows that the token may see."""

    schedules: list[Schedule]
    next_cursor: str | None
    now: datetime
