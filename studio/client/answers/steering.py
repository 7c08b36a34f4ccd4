"""What actions on an instance return."""

from __future__ import annotations

from typing import TypedDict

from studio.client.answers.instances import Instance


class PlannedStep(TypedDict):
    """A step that a restart would keep or run again."""

    seq: int
    kind: str
    name: str
    count: int
    status: str


class RestartPlan(TypedDict):
    """What a restart would do now."""

    generation: int
    keeps: list[PlannedStep]
    runs_again: list[PlannedStep]
    returned_events: int
    dropped_events: int
    ended_children: int
    refused: str | None
    keys_spent: str | None


class Steered(TypedDict):
    """An instance after an action, and whether the action changed anything."""

    instance: Instance
    has_changed: bool


class Deleted(TypedDict):
    """The instance that was deleted."""

    workflow: str
    id: str
