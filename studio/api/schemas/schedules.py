"""Schedules."""

from __future__ import annotations

from datetime import datetime

from ninja import Field, Schema

from studio.api.schemas.instances import Relation
from studio.api.schemas.values import AnyJson, Cursor


class Schedule(Schema):
    """A schedule and when it fires."""

    workflow: str
    name: str
    expression: str = Field(description="Five fields of cron.")
    timezone: str
    params: AnyJson
    is_declared: bool = Field(description="Whether the code still has it.")
    paused_at: datetime | None
    paused_by: str
    next_at: datetime | None
    upcoming: list[datetime] = Field(description="The next times at which it fires.")
    last_planned_at: datetime | None
    last_started_at: datetime | None = Field(description="Also when it was run by hand.")
    last_instance: Relation | None = Field(description="What it started last.")
    last_missed: int | None = Field(description="Planned times that passed while no cluster ran.")
    last_error: str | None = Field(description="Why the last planned time started nothing.")


class SchedulesAnswer(Schema):
    """Schedules."""

    schedules: list[Schedule]
    next_cursor: Cursor
    now: datetime


class ScheduleAnswer(Schema):
    """A schedule."""

    schedule: Schedule
