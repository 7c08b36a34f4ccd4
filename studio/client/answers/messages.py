"""Requests to people, and what sending an event or an answer returns."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from studio.client.answers.history import Event
from studio.client.answers.instances import Instance
from studio.client.answers.values import JSON


class Request(TypedDict):
    """A question that an instance asks people."""

    workflow: str
    id: str
    seq: int
    name: str
    message: str
    schema: JSON
    assignees: list[str]
    opened_at: datetime
    expires_at: datetime | None
    may_answer: bool


class Sent(TypedDict):
    """An instance, and the event that it was sent."""

    instance: Instance
    event: Event
