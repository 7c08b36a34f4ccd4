"""What starting and deleting take and return: options of a start, items of a batch, and what became of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar

if TYPE_CHECKING:
    from engine.models import Instance

P = TypeVar("P")
Fields = Mapping[str, Any]  # params as JSON has them


class Origin(TypedDict, total=False):
    """Who starts an instance and why, for the audit trail."""

    by: object
    reason: str


class StartOptions(Origin, total=False):
    """What may be said about an instance at its start, besides its params."""

    id: str | None
    tags: Iterable[str] | None
    retention: Mapping[str, timedelta | float | str | None] | None


class TagOptions(Origin, total=False):
    tags: Iterable[str] | None


class StartItem(TypedDict, Generic[P], total=False):
    """One instance for `start_many`; a missing id is made up."""

    params: P | Mapping[str, Any]
    id: str | None
    tags: Iterable[str] | None
    retention: Mapping[str, Any] | None


class StartError(TypedDict):
    """Why an item of `start_many` was not started."""

    index: int
    id: str | None
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class StartedMany:
    """What `start_many` did: the instances in the order of their items, and the items it could not start."""

    created: list[Instance]
    errors: list[StartError]


class DeleteError(TypedDict):
    """Why an id of `delete_many` was not deleted."""

    index: int
    id: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class DeletedMany:
    """What `delete_many` did: the ids that are gone, as often as they were named, and those that it left."""

    deleted: list[str]
    errors: list[DeleteError]
