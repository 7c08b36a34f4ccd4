"""The arguments and results of starting and deleting: options of a start, items of a batch, and their outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
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
    """Who does it, for the audit trail: a Django user, or the name of a program."""
    reason: str
    """Why, for the audit trail; at most 2,000 characters."""


class StartOptions(Origin, total=False):
    """Options of an instance at its start, in addition to its params."""

    id: str | None
    """1 to 100 letters, digits, `_` and `-`, not starting with `-`; unique per workflow. None: a UUIDv7."""
    tags: Iterable[str] | None
    """Labels to find the instance by, at most 50."""
    retention: Mapping[str, timedelta | float | str | None] | None
    """How long this instance is kept after its end, by final status; None as a duration means forever. None: the
    rules of the workflow."""
    at: datetime | str | None
    """When it starts: an aware datetime, or ISO 8601 with an offset, within 365 days. It is queued until then, and its
    timeout counts from then. A moment in the past, or None: now."""


class TagOptions(Origin, total=False):
    tags: Iterable[str] | None
    at: datetime | str | None


class StartItem(TypedDict, Generic[P], total=False):
    """One instance for `start_many`: a dict whose keys are all optional."""

    params: P | Mapping[str, Any]
    """The params, as an object of their type or in JSON form."""
    id: str | None
    """The id. None or missing: a UUIDv7."""
    tags: Iterable[str] | None
    """Labels to find the instance by."""
    retention: Mapping[str, Any] | None
    """How long this instance is kept after its end, by final status."""
    at: datetime | str | None
    """When it starts, as for `start`."""


class StartError(TypedDict):
    """Why an item of `start_many` was not started."""

    index: int
    """The position of the item, from 0."""
    id: str | None
    """The id of the item, or None if it has none."""
    code: str
    """id_in_use, invalid_name, invalid_params, invalid_value, limit or invalid."""
    message: str
    """A sentence for people."""


@dataclass(frozen=True, slots=True)
class StartedMany(Generic[Output]):
    """The result of `start_many`."""

    created: list[Instance[Output]]
    """The instances, in the order of their items."""
    errors: list[StartError]
    """A StartError for each item that was not started."""


class DeleteError(TypedDict):
    """Why an id of `delete_many` was not deleted."""

    index: int
    """The position of the id, from 0."""
    id: str
    """The id."""
    code: str
    """not_found, not_finished or needed."""
    message: str
    """A sentence for people."""


@dataclass(frozen=True, slots=True)
class DeletedMany:
    """The result of `delete_many`."""

    deleted: list[str]
    """The deleted ids, as often as they were given."""
    errors: list[DeleteError]
    """A DeleteError for each id that was not deleted."""
