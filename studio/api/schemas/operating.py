"""Workers, health, and the holder of the token."""

from __future__ import annotations

from datetime import datetime

from ninja import Field, Schema

from studio.access.verbs import Verb


class Worker(Schema):
    """A process that was seen in the last 20 seconds."""

    role: str = Field(description="cluster, or shift for a process that runs instances.")
    name: str
    workflows: list[str]
    slots: int = Field(description="Instances that it can run at once.")
    held: int = Field(description="Instances that it runs now.")
    started_at: datetime
    seen_at: datetime
    cluster: str = Field(description="The name of its cluster.")
    version: str = Field(description="The version of Reprise.")
    code: str = Field(description="A fingerprint of the loaded handlers: equal code has equal ones.")
    memory: int | None = Field(description="Bytes.")
    drained_at: datetime | None = Field(description="Since when it, or its cluster, claims nothing.")
    drained_by: str
    drain_reason: str


class Me(Schema):
    """Who the holder of the token is, and what it may do."""

    name: str = Field(description="As the audit trail has it.")
    verbs: list[Verb] = Field(description="What the token allows now.")
    workflows: list[str] = Field(description="Patterns of the workflows for which it holds.")
    expires_at: datetime | None


class WorkersAnswer(Schema):
    """Workers."""

    workers: list[Worker]
    now: datetime


class DrainedAnswer(Schema):
    """A worker that was drained or resumed."""

    worker: Worker
    warnings: list[str] = Field(
        description="What to know, such as the workflows that no other worker serves."
    )


class HealthAnswer(Schema):
    """Whether everything works. Without the facts, the database does not answer or is not migrated."""

    is_healthy: bool
    problems: list[str] = Field(description="What is wrong, one sentence each.")
    clusters: int = 0
    workers: int = 0
    slots: int = 0
    held: int = 0
    last_heartbeat_at: datetime | None = None
    due: int = 0
    oldest_due_seconds: float | None = None
    oldest_due_workflow: str | None = None
    held_by_pause: int = Field(0, description="Due, but held because their workflow is paused.")
    schedules_overdue: int = 0
    paused_by_engine: int = 0
    open_requests: int = 0
    failed_in_24_h: int = 0
    need_somebody: int = 0
    now: datetime | None = None
