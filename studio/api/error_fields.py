"""What requests about groups of errors may hold."""

from __future__ import annotations

from typing import Literal

from ninja import Field, Schema
from pydantic import ConfigDict, StrictInt

from engine.steer.failures import MOST_FAILURES
from studio.api.cursors import GroupCursor
from studio.api.fields import Because, Moment, Page, Text


class Ignore(Because):
    """How long a group is ignored: without a limit, until it is reopened."""

    # The operation refuses one without a reason, so that the refusal has our words.
    model_config = ConfigDict(json_schema_extra={"required": ["reason"]})

    until: Moment | None = Field(None, description="Until this moment.")
    count: StrictInt | None = Field(
        None, ge=1, le=MOST_FAILURES, description="Until it has failed so many times more."
    )


class GroupsWanted(Page):
    """Which groups of errors."""

    cursor: GroupCursor | None = None
    workflow: Text | None = Field(None, max_length=64, description="The name of a workflow.")
    state: Literal["open", "resolved", "ignored", "all"] = Field("open", description="Those in this state.")
    query: Text | None = Field(
        None,
        max_length=300,
        description="A part of the type, the message, the step, the workflow or the code, or a fingerprint.",
    )


class GroupWanted(Schema):
    """How much of a group of errors."""

    full: bool = Field(False, description="With details and traceback of the latest failure.")


class GroupInstancesWanted(Page):
    """Which instances of a group."""

    which: Literal["errored", "retrying", "paused", "went_on"] = Field(
        "errored", description="Those that are errored, wait for a retry, are paused, or went on."
    )


class TrendWanted(Schema):
    """How fine a trend is."""

    unit: Literal["day", "hour", "minutes"] = Field(
        "day", description="14 days in UTC, 24 hours, or an hour in steps of three minutes."
    )
