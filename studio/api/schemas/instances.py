"""Instances, and what starting and listing them answers."""

from __future__ import annotations

from datetime import datetime

from ninja import Field, Schema

from engine.values.states import (
    InstanceStatus,
    RollbackState,
    WaitingFor,
)
from studio.api.schemas.values import AnyJson, Cursor, Kept, RecordedError


class Relation(Schema):
    """An instance, and its status."""

    workflow: str
    id: str
    status: InstanceStatus


class Instance(Schema):
    """The state of an instance, without its values."""

    workflow: str
    id: str
    generation: int = Field(description="1, and one more with each restart.")
    status: InstanceStatus
    waiting_for: WaitingFor | None = Field(description="What a waiting instance waits for.")
    rollback: RollbackState | None = Field(
        description="How far the rollback of its steps is, if there is one."
    )
    ends_as: InstanceStatus | None = Field(description="Its status after the rollback.")
    tags: list[str]
    started_by: str = Field(description="The user, the token, the schedule or the parent that started it.")
    created_at: datetime
    starts_at: datetime | None = Field(description="When it is to start, if it was started for later.")
    started_at: datetime | None = Field(description="When a worker took it first.")
    finished_at: datetime | None
    wake_at: datetime | None = Field(description="When it is due; of a running one, when its lease ends.")
    deadline_at: datetime | None = Field(description="When it times out.")
    retention: Kept | None = Field(description="How long it is kept, if it has its own rules.")


class Listed(Instance):
    """An instance in a list."""

    why: str = Field(description="A sentence about its state: what it does or waits for.")


class Whole(Listed):
    """An instance with its values."""

    params: AnyJson
    output: AnyJson
    error: RecordedError | None = Field(
        description="Why it is errored; while the engine keeps it paused, why."
    )
    pause_reason: RecordedError | None = Field(description="Why the engine paused it.")
    unreached: list[int] = Field(
        description="The numbers of recorded steps that its code did not call again."
    )
    parent: Relation | None = Field(description="The instance that started it.")
    began_at: datetime = Field(description="When this generation began.")


class InstanceAnswer(Schema):
    """An instance."""

    instance: Instance


class StartErrorAnswer(Schema):
    """Why an item of a batch was not started."""

    index: int
    id: str | None
    code: str
    message: str


class BatchAnswer(Schema):
    """What a batch has started, and what it has not."""

    created: list[Instance]
    errors: list[StartErrorAnswer]


class Searched(Schema):
    """How much a search has looked at."""

    rows: int | None = Field(
        description="So many instances from the first in the order; null if none was left out. The cursor goes on."
    )
    of: int | None = Field(description="About how many instances there are, if some were left out.")
    hint: str | None = Field(description="A term with which an index would find all.")


class InstancesAnswer(Schema):
    """A page of instances."""

    instances: list[Listed]
    searched: Searched | None = Field(description="Of a search or another order than that of the starts.")
    next_cursor: Cursor
    now: datetime
