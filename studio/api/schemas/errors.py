"""Groups of errors."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from ninja import Field, Schema

from studio.api.schemas.history import Action
from studio.api.schemas.instances import Listed
from studio.api.schemas.values import Cursor, RecordedError


class ErrorGroup(Schema):
    """Failures that are alike: the same error at the same place in one workflow."""

    fingerprint: str = Field(description="What identifies it.")
    kin: str = Field(
        description="The same in every workflow that fails with this error in a step of this name."
    )
    workflow: str
    step: str | None = Field(description="The name of the step; null if the handler itself failed.")
    phase: Literal["do", "rollback"]
    type: str = Field(description="The name of the error's class.")
    message: str = Field(description="Its message, without what differs from failure to failure.")
    sample: str | None = Field(description="The latest message; null if the step is sensitive.")
    frame: str | None = Field(description="The innermost file and function of the project's own code.")
    first_seen: datetime
    last_seen: datetime
    state: Literal["open", "resolved", "ignored"]
    decided_by: str
    decided_at: datetime | None
    reason: str
    ignored_until: datetime | None
    ignored_count: int | None = Field(description="How many more failures are ignored.")
    errored: int = Field(description="Instances that are errored now.")
    retrying: int = Field(description="Instances that wait for a retry now.")
    attempts: int = Field(description="Failed attempts in 14 days.")


class LatestFailure(Schema):
    """The newest failure of a group."""

    workflow: str
    id: str
    generation: int
    step: int | None = Field(description="The number of its step; null if the handler itself failed.")
    phase: str
    attempt: int | None
    max_attempts: int | None
    failed_at: datetime
    error: RecordedError | None


class Recovered(Schema):
    """How often the step has succeeded since the last failure."""

    count: int = Field(description="Counted up to 100.")
    since: datetime


class Bar(Schema):
    """How often a group failed in a time that begins then."""

    at: datetime
    failures: int


class Share(Schema):
    """A value that stands out in the instances that fail now."""

    what: str = Field(
        description="A path such as `params.region`, `tag`, or `code`: the handler's fingerprint."
    )
    value: str = Field(description="A text as it is, another value as JSON.")
    count: int
    of: int
    usual_count: int = Field(description="The same among other instances of the workflow.")
    usual_of: int = Field(description="0 if there are none to compare with.")


class ErrorGroupsAnswer(Schema):
    """Groups of errors."""

    groups: list[ErrorGroup]
    next_cursor: Cursor
    now: datetime


class ErrorGroupAnswer(Schema):
    """A group of errors."""

    group: ErrorGroup


class ErrorGroupDetails(ErrorGroupAnswer):
    """A group of errors with what is known of it."""

    elsewhere: list[ErrorGroup] = Field(description="The same error in other workflows.")
    latest: LatestFailure | None
    recovered: Recovered | None = Field(description="Null if it has not succeeded since the last failure.")
    audit: list[Action] = Field(description="Notes and decisions, the newest first, at most 50.")
    now: datetime


class ErrorGroupInstances(Schema):
    """Instances whose latest failure belongs to a group."""

    instances: list[Listed]
    errored: int
    retrying: int
    paused: int
    went_on: int
    next_cursor: Cursor
    now: datetime


class TrendAnswer(Schema):
    """How often a group failed, the earliest first."""

    trend: list[Bar]


class SharesAnswer(Schema):
    """What the failing instances of a group have in common, the least usual first."""

    shares: list[Share]
