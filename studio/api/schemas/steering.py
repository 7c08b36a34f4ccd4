"""What actions on an instance answer."""

from __future__ import annotations

from ninja import Field, Schema

from engine.values.states import (
    StepKind,
    StepStatus,
)
from studio.api.schemas.instances import Instance


class PlannedStep(Schema):
    """A step that a restart would keep or run again."""

    seq: int
    kind: StepKind
    name: str
    count: int
    status: StepStatus


class RestartPlan(Schema):
    """What a restart would do now."""

    generation: int = Field(description="The number of the new generation.")
    keeps: list[PlannedStep]
    runs_again: list[PlannedStep]
    returned_events: int = Field(description="Consumed events that go back into the buffer.")
    dropped_events: int
    ended_children: int = Field(description="Children that are terminated.")
    refused: str | None = Field(description="Why a restart would be refused.")
    keys_spent: str | None = Field(
        description="Why steps that run again could not keep their idempotency keys."
    )


class SteeredAnswer(Schema):
    """An instance, and whether the request has changed it."""

    instance: Instance
    has_changed: bool


class DeletedInstance(Schema):
    """Which instance is gone."""

    workflow: str
    id: str


class DeletedAnswer(Schema):
    """What was deleted."""

    deleted: DeletedInstance
