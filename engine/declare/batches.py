"""The arguments and results of starting and deleting: options of a start, items of a batch, and their outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypedDict

from typing_extensions import TypeVar  # with a default: annotations may leave the type out

if TYPE_CHECKING:
    from engine.models import Instance

P = TypeVar("P")
Output = TypeVar("Output", default=Any)
Fields = Mapping[str, Any]  # params in JSON form


class Origin(TypedDict, total=False):
    """Who starts an instance and why, for the audit trail."""

    by: object
    reason: str


class StartOptions(Origin, total=False):
    """Options of an instance at its start, in addition to its params."""

    id: str | None
    tags: Iterable[str] | None
    retention: Mapping[str, timedelta | float | str | None] | None


class TagOptions(Origin, total=False):
    tags: Iterable[str] | None


class StartItem(TypedDict, Generic[P], total=False):
    """One instance for `start_many`; a missing id is generated."""

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
class StartedMany(Generic[Output]):
    """The result of `start_many`: the instances in the order of their items, and the items it could not start."""

    created: list[Instance[Output]]
    errors: list[StartError]


class DeleteError(TypedDict):
    """Why an id of `delete_many` was not deleted."""

    index: int
    id: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class DeletedMany:
    """The result of `delete_many`: the deleted ids, as often as they were given, and those it could not delete."""

    deleted: list[str]
    errors: list[DeleteError]
