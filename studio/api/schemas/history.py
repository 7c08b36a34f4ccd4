"""What an instance has recorded: steps, events, log, generations, actions."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from ninja import Field, Schema

from engine.values.states import (
    AttemptPhase,
    AttemptStatus,
    EventState,
    InstanceStatus,
    RollbackState,
    StepKind,
    StepStatus,
)
from studio.api.schemas.instances import Relation, Whole
from studio.api.schemas.values import AnyJson, Cursor, RecordedError


class Attempt(Schema):
    """One attempt of a step, or of its rollback."""

    number: int = Field(description="From 1, in each phase.")
    phase: AttemptPhase
    status: AttemptStatus
    worker: str
    started_at: datetime
    finished_at: datetime | None
    error: RecordedError | None


class Decision(Schema):
    """What a person has decided of a step."""

    outcome: Literal["skipped", "failed"]
    by: str


class Step(Schema):
    """A step of an instance."""

    seq: int = Field(description="Its number in the generation, by the order in which steps began.")
    parent: int | None = Field(description="The number of the step that it is in.")
    kind: StepKind
    name: str
    count: int = Field(description="Which step of its kind and name it is, from 1.")
    label: str = Field(description="How texts name it.")
    status: StepStatus
    rollback: RollbackState | None
    kept_from: int | None = Field(description="The generation that ran it, if a restart kept it.")
    started_at: datetime
    finished_at: datetime | None
    wake_at: datetime | None = Field(description="When its wait ends by itself.")
    sensitive: bool = Field(description="Whether its output is never shown.")
    error: RecordedError | None
    is_exhausted: bool = Field(
        description="Whether its attempts are used up and nobody has decided what follows."
    )
    decision: Decision | None = Field(
        description="What a person has decided of it, instead of running it again."
    )
    attempts: list[Attempt]
    attempts_total: int = Field(description="Of its body.")
    items: dict[str, int] | None = Field(description="Of a map or parallel: how many items by status.")
    output: AnyJson = Field(None, description="With `full`; null if it is sensitive.")


class LogLine(Schema):
    """A line of an instance's log."""

    at: datetime
    level: str
    message: str
    fields: dict[str, Any] | None = Field(description="What was logged with it, by name.")
    step: int | None = Field(description="The number of the step that wrote it; null for the handler.")
    attempt: int | None
    generation: int


class StepWithLogs(Schema):
    """A step with its output and log."""

    step: Step
    logs: list[LogLine]


class Event(Schema):
    """An event of an instance."""

    type: str
    state: EventState
    is_answer: bool = Field(description="Whether it answers a request.")
    dedup_key: str | None
    sent_by: str
    received_at: datetime
    consumed_by: int | None = Field(description="The number of the step that got it.")
    consumed_generation: int | None
    payload: AnyJson = Field(None, description="In lists of events, and with `full`.")


class Generation(Schema):
    """An earlier generation of an instance."""

    number: int
    status: InstanceStatus
    rollback: RollbackState | None
    started_at: datetime | None
    finished_at: datetime | None
    error: RecordedError | None
    pause_reason: RecordedError | None


class Action(Schema):
    """A row of the audit trail."""

    at: datetime
    verb: str = Field(description="What was done, such as pause.")
    actor: str = Field(description="The user, or the token after the name of its owner.")
    before: str = Field(description="The status before.")
    after: str = Field(description="The status after.")
    outcome: Literal["done", "denied"]
    reason: str
    data: dict[str, Any] | None = Field(description="What else belongs to it.")


class ActionOn(Action):
    """A row of the audit trail, and what it is about."""

    workflow: str
    id: str


class Record(Schema):
    """An instance with its newest steps, events, children and actions."""

    now: datetime
    instance: Whole
    steps: list[Step] = Field(description="The newest ones, in the order in which they began.")
    steps_total: int
    events: list[Event]
    events_total: int
    children: list[Relation] = Field(description="Those whose workflow the token covers.")
    children_total: int
    generations: list[Generation] = Field(description="The earlier ones.")
    audit: list[Action]


class StepsAnswer(Schema):
    """A page of steps."""

    steps: list[Step]
    next_cursor: Cursor


class EventsAnswer(Schema):
    """A page of events."""

    events: list[Event]
    total: int
    next_cursor: Cursor
    now: datetime


class ChildrenAnswer(Schema):
    """A page of children."""

    children: list[Relation]
    next_cursor: Cursor


class GenerationsAnswer(Schema):
    """A page of generations."""

    generations: list[Generation]
    next_cursor: Cursor


class LogsAnswer(Schema):
    """A page of log lines."""

    logs: list[LogLine]
    next_cursor: Cursor


class NoteAnswer(Schema):
    """The row of the audit trail that has the note as its reason."""

    note: Action


class ActionsAnswer(Schema):
    """A page of the audit trail."""

    actions: list[ActionOn]
    next_cursor: Cursor
