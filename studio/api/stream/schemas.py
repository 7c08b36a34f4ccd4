"""The shapes of the data of server-sent events, for the OpenAPI document."""

from __future__ import annotations

from datetime import datetime

from ninja import Field, Schema

from engine.status.changes import Kind
from engine.values.states import (
    AttemptPhase,
    AttemptStatus,
    EventState,
    InstanceStatus,
    RollbackState,
    StepKind,
    StepStatus,
)
from studio.api.schemas.history import Action, Generation, LogLine
from studio.api.schemas.instances import Instance
from studio.api.schemas.values import RecordedError


class ChangedInstance(Instance):
    """The instance, as it is now."""

    why: str = Field(description="A sentence about its state.")
    error: RecordedError | None


class ChangedStep(Schema):
    """A step that began, waits or ended."""

    seq: int
    generation: int
    parent: int | None
    kind: StepKind
    name: str
    count: int
    status: StepStatus
    rollback: RollbackState | None
    kept_from: int | None
    started_at: datetime
    finished_at: datetime | None
    wake_at: datetime | None
    sensitive: bool
    error: RecordedError | None


class ChangedAttempt(Schema):
    """An attempt that began or ended."""

    step: int = Field(description="The number of its step.")
    generation: int
    number: int
    phase: AttemptPhase
    status: AttemptStatus
    worker: str
    started_at: datetime
    finished_at: datetime | None
    error: RecordedError | None


class ChangedEvent(Schema):
    """An event that was sent or consumed."""

    key: int
    type: str
    state: EventState
    is_answer: bool
    dedup_key: str | None
    sent_by: str
    received_at: datetime
    consumed_by: int | None
    consumed_generation: int | None


class End(Schema):
    """How the instance ended. Nothing comes after it."""

    status: InstanceStatus | None
    generation: int | None
    is_deleted: bool = Field(description="Whether there is nothing left of it; then the rest is null.")


SHAPES: dict[str, type[Schema]] = {
    Kind.GENERATION: Generation,
    Kind.ACTION: Action,
    Kind.EVENT: ChangedEvent,
    Kind.STEP: ChangedStep,
    Kind.ATTEMPT: ChangedAttempt,
    Kind.LOG: LogLine,
    Kind.INSTANCE: ChangedInstance,
    "end": End,
}
