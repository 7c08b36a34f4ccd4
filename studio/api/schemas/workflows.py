"""Workflows."""

from __future__ import annotations

from datetime import datetime

from ninja import Field, Schema

from engine.values.states import (
    InstanceStatus,
)
from studio.api.schemas.schedules import Schedule
from studio.api.schemas.values import JsonSchema, Kept


class Workflow(Schema):
    """A workflow in the code, or one that only has instances."""

    name: str
    is_declared: bool = Field(description="Whether this process has its code.")
    description: str
    params_schema: JsonSchema | None = Field(description="The JSON Schema of its params.")
    max_running: int | None = Field(description="How many instances run at once.")
    retention: Kept | None = Field(description="How long its instances are kept after their end.")
    counts: dict[InstanceStatus, int] = Field(
        description="Its instances by status, each counted up to `counted_up_to`."
    )
    workers: int = Field(description="How many workers serve it now.")
    schedules: list[Schedule] = Field(description="Up to 200 of them; `/schedules` lists all.")
    schedules_total: int


class WorkflowsAnswer(Schema):
    """Workflows."""

    workflows: list[Workflow]
    counted_up_to: int
    last_start_at: datetime | None = Field(description="Of any instance.")
    now: datetime


class WorkflowAnswer(Schema):
    """A workflow and its schedules."""

    workflow: Workflow
    schedules: list[Schedule]


class PausedWorkflow(Schema):
    """The pause of a workflow, and how many of its instances it holds."""

    workflow: str
    paused_at: datetime
    paused_by: str = Field(description="Empty for a program that did not say.")
    reason: str
    released: int = Field(description="How many instances were released since.")
    held: int = Field(description="How many instances are due and held, counted up to 10,000.")


class PausedWorkflowsAnswer(Schema):
    """Paused workflows."""

    paused_workflows: list[PausedWorkflow]
    counted_up_to: int
    now: datetime


class PausedWorkflowAnswer(Schema):
    """A workflow that is paused."""

    paused_workflow: PausedWorkflow


class ResumedWorkflow(Schema):
    """What a resume of a workflow has done."""

    workflow: str
    released: int = Field(description="How many instances were held and may go on now.")
    held: int = Field(description="How many are due and still held.")
    is_paused: bool = Field(description="Whether the workflow is still paused.")
