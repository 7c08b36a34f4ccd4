"""What an instance has recorded: steps, events, log, generations, actions."""

from __future__ import annotations

from datetime import datetime
from typing import NotRequired, TypedDict

from studio.client.answers.instances import Relation, Whole
from studio.client.answers.values import JSON, RecordedError


class Attempt(TypedDict):
    """One attempt of a step, or of its rollback."""

    number: int
    phase: str
    status: str
    worker: str
    started_at: datetime
    finished_at: datetime | None
    error: RecordedError | None


class Decision(TypedDict):
    """What a person has decided of a step: that it is `skipped`, or has `failed`."""

    outcome: str
    by: str


class Step(TypedDict):
    """A step of an instance."""

    seq: int
    parent: int | None
    kind: str
    name: str
    count: int
    label: str
    status: str
    rollback: str | None
    kept_from: int | None
    started_at: datetime
    finished_at: datetime | None
    wake_at: datetime | None
    sensitive: bool
    error: RecordedError | None
    is_exhausted: bool
    decision: Decision | None
    attempts: list[Attempt]
    attempts_total: int
    items: NotRequired[dict[str, int] | None]
    output: NotRequired[JSON]


class LogLine(TypedDict):
    """A line of an instance's log."""

    at: datetime
    level: str
    message: str
    fields: JSON
    step: int | None
    attempt: int | None
    generation: int


class StepWithLogs(TypedDict):
    """A step with its output and the newest lines of its log."""

    step: Step
    logs: list[LogLine]


class Event(TypedDict):
    """An event of an instance."""

    type: str
    state: str
    is_answer: bool
    dedup_key: str | None
    sent_by: str
    received_at: datetime
    consumed_by: int | None
    consumed_generation: int | None
    payload: NotRequired[JSON]


class Generation(TypedDict):
    """An earlier generation of an instance."""

    number: int
    status: str
    rollback: str | None
    started_at: datetime | None
    finished_at: datetime | None
    error: RecordedError | None
    pause_reason: RecordedError | None


class Action(TypedDict):
    """A row of an instance's audit trail."""

    at: datetime
    verb: str
    actor: str
    before: str
    after: str
    outcome: str
    reason: str
    data: JSON


class ActionOn(Action):
    """A row of the audit trail, and what it is about."""

    workflow: str
    id: str


class Record(TypedDict):
    """An instance with its newest steps, events, children and actions. `etag` stands for its state."""

    etag: str
    now: datetime
    instance: Whole
    steps: list[Step]
    steps_total: int
    events: list[Event]
    events_total: int
    children: list[Relation]
    children_total: int
    generations: list[Generation]
    audit: list[Action]


class EventsPage(TypedDict):
    """A page of the events of an instance."""

    events: list[Event]
    total: int
    next_cursor: str | None
    now: datetime
