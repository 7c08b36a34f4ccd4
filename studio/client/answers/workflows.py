"""Workflows."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from studio.client.answers.schedules import Schedule
from studio.client.answers.values import JSON


class Workflow(TypedDict):
    """A workflow in the code, or one that only has instances."""

    name: str
    is_declared: bool
    description: str
    params_schema: JSON
    max_running: int | None
    retention: JSON
    counts: dict[str, int]
    workers: int
    schedules: list[Schedule]
    schedules_total: int


class WorkflowWithSchedules(TypedDict):
    """A workflow and its schedules."""

    workflow: Workflow
    schedules: list[Schedule]


class PausedWorkflow(TypedDict):
    """The pause of a workflow, and how many of its instances it holds."""

    workflow: str
    paused_at: datetime
    paused_by: str
    reason: str
    released: int
    held: int


class ResumedWorkflow(TypedDict):
    """What a resume of a workflow has done."""

    workflow: str
    released: int
    held: int
    is_paused: bool


class Workflows(TypedDict):
    """All workflows that the token may see."""

    workflows: list[Workflow]
    counted_up_to: int
    last_start_at: datetime | None
    now: datetime
