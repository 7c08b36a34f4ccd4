"""Instances, and what starting and listing them returns."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypedDict

from studio.client.answers.values import JSON, RecordedError


class Relation(TypedDict):
    """An instance, and its status."""

    workflow: str
    id: str
    status: str


class Instance(TypedDict):
    """The state of an instance, without its values."""

    workflow: str
    id: str
    generation: int
    status: str
    waiting_for: str | None
    rollback: str | None
    ends_as: str | None
    tags: list[str]
    started_by: str
    created_at: datetime
    starts_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    wake_at: datetime | None
    deadline_at: datetime | None
    retention: dict[str, float | None] | None


class Listed(Instance):
    """An instance in a list, with a sentence about its state."""

    why: str


class Whole(Listed):
    """An instance with its values."""

    params: JSON
    output: JSON
    error: RecordedError | None
    pause_reason: RecordedError | None
    unreached: list[Any] | None
    parent: Relation | None
    began_at: datetime


class StartError(TypedDict):
    """Why an item of a batch was not started."""

    index: int
    id: str | None
    code: str
    message: str


class Batch(TypedDict):
    """The instances that a batch started, and the items that it did not."""

    created: list[Instance]
    errors: list[StartError]


class NewInstance(TypedDict, total=False):
    """An item of a batch."""

    params: JSON
    id: str
    tags: list[str]
    retention: dict[str, Any]
    at: datetime | str


Sort = Literal["started", "-started", "finished", "-finished", "duration", "-duration"]


class Searched(TypedDict):
    """How much a search has looked at: so many `rows`, or all if None, of about so many instances.

    `hint` is a term with which an index would find all.
    """

    rows: int | None
    of: int | None
    hint: str | None


class InstancesPage(TypedDict):
    """A page of instances."""

    instances: list[Listed]
    searched: Searched | None
    next_cursor: str | None
    now: datetime
