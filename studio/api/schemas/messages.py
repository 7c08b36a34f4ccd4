"""Requests to people, and what sending an event or an answer answers."""

from __future__ import annotations

from datetime import datetime

from ninja import Field, Schema

from studio.api.schemas.history import Event
from studio.api.schemas.instances import Instance
from studio.api.schemas.values import Cursor, JsonSchema


class Request(Schema):
    """A question that an instance asks people."""

    workflow: str
    id: str
    seq: int = Field(description="The number of its step, by which it is answered.")
    name: str
    message: str
    answer_schema: JsonSchema | None = Field(alias="schema", description="The JSON Schema of the answer.")
    assignees: list[str] = Field(
        description="Names of users, and of groups as group:<name>; empty: any approver."
    )
    opened_at: datetime
    expires_at: datetime | None
    may_answer: bool = Field(description="Whether the holder of the token may answer it.")


class RequestsAnswer(Schema):
    """A page of requests."""

    requests: list[Request]
    next_cursor: Cursor


class SentAnswer(Schema):
    """The instance, and the event that was sent to it."""

    instance: Instance
    event: Event


class AnsweredAnswer(Schema):
    """The instance, and the event that carries the answer."""

    instance: Instance
    event: Event
