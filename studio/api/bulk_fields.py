"""What requests about bulk jobs may hold."""

from __future__ import annotations

from typing import Literal

from ninja import Field
from pydantic import StrictBool, StrictInt
from pydantic.config import JsonDict

from engine.bulk import BulkAction
from engine.jobs import pace
from engine.jobs.selection import MOST_INSTANCES
from studio.api.cursors import JobCursor
from studio.api.fields import INSTANCE_ID, INSTANCE_ID_OR_NULL, WORKFLOW_NAME, Body, Page, Reason


def _from_one(most: int) -> JsonDict:
    # The engine checks it, with its own words.
    return {"anyOf": [{"type": "integer", "minimum": 1, "maximum": most}, {"type": "null"}]}


class Named(Body):
    """An instance."""

    workflow: str = Field(json_schema_extra={"pattern": WORKFLOW_NAME})
    id: str = Field(json_schema_extra={"pattern": INSTANCE_ID})


class PreviewBulk(Body):
    """Which instances, and what is done to them: either those that a search finds, or those that are named."""

    action: BulkAction = Field(description="What is done to each instance.")
    query: str | None = Field(
        None, description="A search, such as `status:errored workflow:ship-order`. It may not be empty."
    )
    instances: list[Named] | None = Field(
        None,
        description="Instead of a search. If one of them does not exist, nothing is done.",
        json_schema_extra={
            "anyOf": [
                {
                    "type": "array",
                    "maxItems": MOST_INSTANCES,
                    "items": Named.model_json_schema(),
                },
                {"type": "null"},
            ]
        },
    )
    rollback: StrictBool | None = Field(None, description="Only of terminate: roll back their steps first.")
    keys: Literal["new", "same"] | None = Field(
        None, description="Only of restart: new idempotency keys, or those that the steps had."
    )


class StartBulk(PreviewBulk):
    """A bulk job to start, and why. Terminate and restart need a reason."""

    at_once: StrictInt | None = Field(
        None,
        description="So many of its instances run at a time.",
        json_schema_extra=_from_one(pace.MOST_AT_ONCE),
    )
    ask_after: StrictInt | None = Field(
        None,
        description="It pauses when so many were done or have failed, until it is resumed.",
        json_schema_extra=_from_one(pace.MOST),
    )
    stop_after: StrictInt | None = Field(
        pace.STOP_AFTER,
        description="It pauses after so many failures since it was started or resumed. What goes on and fails again is "
        "a failure.",
        json_schema_extra=_from_one(pace.MOST),
    )
    resume_workflows: StrictBool = Field(False, description="End the pauses of their workflows first.")
    id: str | None = Field(
        None, description="Its id. Without one, it gets a UUIDv7.", json_schema_extra=INSTANCE_ID_OR_NULL
    )
    reason: Reason = ""


class JobsWanted(Page):
    """Which part of the list of bulk jobs."""

    cursor: JobCursor | None = None


class ItemsWanted(Page):
    """Which instances of a bulk job."""

    outcome: Literal["open", "done", "skipped", "failed"] | None = Field(
        None, description="Those with this outcome."
    )
