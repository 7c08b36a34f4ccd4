"""Workers, health, and the holder of the token."""

from __future__ import annotations

from datetime import datetime
from typing import NotRequired, TypedDict


class Worker(TypedDict):
    """A process that was seen in the last 20 seconds."""

    role: str
    name: str
    workflows: list[str]
    slots: int
    held: int
    started_at: datetime
    seen_at: datetime
    cluster: str
    version: str
    code: str
    memory: int | None
    drained_at: datetime | None
    drained_by: str
    drain_reason: str


class Workers(TypedDict):
    """The workers, with the time of the server."""

    workers: list[Worker]
    now: datetime


class Drained(TypedDict):
    """A worker that was drained or resumed, and what to know about it."""

    worker: Worker
    warnings: list[str]


class Me(TypedDict):
    """Whom the token belongs to, and what it may do."""

    name: str
    verbs: list[str]
    workflows: list[str]
    expires_at: datetime | None


class Health(TypedDict):
    """Whether everything works. The facts are missing if the database does not answer or is not migrated."""

    is_healthy: bool
    problems: list[str]
    clusters: NotRequired[int]
    workers: NotRequired[int]
    slots: NotRequired[int]
    held: NotRequired[int]
    last_heartbeat_at: NotRequired[datetime | None]
    due: NotRequired[int]
    oldest_due_seconds: NotRequired[float | None]
    oldest_due_workflow: NotRequired[str | None]
    held_by_pause: NotRequired[int]
    schedules_overdue: NotRequired[int]
    paused_by_engine: NotRequired[int]
    open_requests: NotRequired[int]
    failed_in_24_h: NotRequired[int]
    need_somebody: NotRequired[int]
    now: NotRequired[datetime]
