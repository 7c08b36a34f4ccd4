"""Bulk jobs."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from studio.client.answers.values import JSON


class BulkShare(TypedDict):
    """Instances to which the action does not apply for one reason."""

    code: str
    reason: str
    count: int
    examples: list[str]


class BulkPreview(TypedDict):
    """What a bulk job would do if it were started now."""

    action: str
    total: int
    eligible: int
    examples: list[str]
    rolled_back: BulkShare | None
    skipped: list[BulkShare]


class BulkPace(TypedDict):
    """How fast a bulk job goes, and when it pauses itself. None: without such a limit."""

    at_once: int | None
    ask_after: int | None
    stop_after: int | None


class BulkJob(TypedDict):
    """A bulk job and how far it is."""

    id: str
    action: str
    arguments: JSON
    pace: BulkPace
    query: str
    actor: str
    reason: str
    status: str
    total: int
    done: int
    skipped: int
    failed: int
    left: int
    created_at: datetime
    paused_at: datetime | None
    pause_reason: str
    ended_at: datetime | None
    rate: float | None
    ends_in: float | None


class BulkItem(TypedDict):
    """An instance of a bulk job, and what became of it."""

    position: int
    workflow: str
    id: str
    generation: int
    outcome: str
    code: str
    message: str
    at: datetime | None


class BulkJobsPage(TypedDict):
    """A page of bulk jobs."""

    jobs: list[BulkJob]
    next_cursor: str | None
    now: datetime


class BulkItemsPage(TypedDict):
    """A page of the instances of a bulk job."""

    items: list[BulkItem]
    next_cursor: str | None
