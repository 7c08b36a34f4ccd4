"""Groups of errors."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict

from studio.client.answers.history import Action
from studio.client.answers.instances import Listed
from studio.client.answers.values import RecordedError


class ErrorGroup(TypedDict):
    """Failures that are alike: the same error at the same place in one workflow."""

    fingerprint: str
    kin: str
    workflow: str
    step: str | None
    phase: str
    type: str
    message: str
    sample: str | None
    frame: str | None
    first_seen: datetime
    last_seen: datetime
    state: str
    decided_by: str
    decided_at: datetime | None
    reason: str
    ignored_until: datetime | None
    ignored_count: int | None
    errored: int
    retrying: int
    attempts: int


class ErrorGroupsPage(TypedDict):
    """A page of groups of errors."""

    groups: list[ErrorGroup]
    next_cursor: str | None
    now: datetime


class LatestFailure(TypedDict):
    """The newest failure of a group."""

    workflow: str
    id: str
    generation: int
    step: int | None
    phase: str
    attempt: int | None
    max_attempts: int | None
    failed_at: datetime
    error: RecordedError | None


class Recovered(TypedDict):
    """How often the step has succeeded since the last failure, counted up to 100."""

    count: int
    since: datetime


class ErrorGroupDetails(TypedDict):
    """A group of errors, the same error in other workflows, its latest failure, and notes and decisions."""

    group: ErrorGroup
    elsewhere: list[ErrorGroup]
    latest: LatestFailure | None
    recovered: Recovered | None
    audit: list[Action]
    now: datetime


class ErrorGroupInstances(TypedDict):
    """A page of instances whose latest failure belongs to a group, and how many there are of each kind."""

    instances: list[Listed]
    errored: int
    retrying: int
    paused: int
    went_on: int
    next_cursor: str | None
    now: datetime


class Bar(TypedDict):
    """How often a group failed in a time that begins then."""

    at: datetime
    failures: int


class Share(TypedDict):
    """A value that stands out in the instances that fail now, and how many others of the workflow have it."""

    what: str
    value: str
    count: int
    of: int
    usual_count: int
    usual_of: int
