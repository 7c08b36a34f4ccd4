"""Bulk jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from ninja import Field, Schema

from engine.bulk import BulkAction, BulkStatus
from studio.api.schemas.values import Cursor


class BulkShare(Schema):
    """Instances to which the action does not apply for one reason."""

    code: str = Field(description="The reason as a word, such as `finished`.")
    reason: str = Field(description="The reason as a sentence.")
    count: int
    examples: list[str] = Field(description="Up to three of them, as `workflow/id`, the oldest first.")


class BulkPreview(Schema):
    """What a bulk job would do if it were started now."""

    action: BulkAction
    total: int = Field(description="How many instances were found.")
    eligible: int = Field(description="To how many of them the action applies.")
    examples: list[str] = Field(description="Up to three of these, as `workflow/id`.")
    rolled_back: BulkShare | None = Field(
        description="Of a retry, those whose steps were rolled back: they can only be restarted."
    )
    skipped: list[BulkShare] = Field(description="The others that would be skipped, by reason, most first.")


class BulkPace(Schema):
    """How fast a bulk job goes, and when it pauses itself. Null: without such a limit."""

    at_once: int | None = Field(description="So many of its instances run at a time.")
    ask_after: int | None = Field(description="It pauses when so many were done or have failed.")
    stop_after: int | None = Field(
        description="It pauses after so many failures since it was started or resumed."
    )


class BulkJob(Schema):
    """A bulk job and how far it is."""

    id: str
    action: BulkAction | Literal["start"] = Field(
        description="What it does to each instance. `start`: it starts them."
    )
    arguments: dict[str, Any] = Field(description="`rollback` of terminate, `keys` of restart.")
    pace: BulkPace
    query: str = Field(description="The search that found the instances; empty if they were named.")
    actor: str
    reason: str
    status: BulkStatus
    total: int = Field(description="How many instances it is about.")
    done: int
    skipped: int = Field(description="To how many the action did not apply.")
    failed: int
    left: int = Field(description="How many are open.")
    created_at: datetime
    paused_at: datetime | None
    pause_reason: str = Field(description="Why it is paused, also if it paused itself.")
    ended_at: datetime | None
    rate: float | None = Field(
        description="Instances a second in the last minute; null if nothing was done in that time."
    )
    ends_in: float | None = Field(description="Seconds that the rest takes at this rate.")


class BulkItem(Schema):
    """An instance of a bulk job, and what became of it."""

    position: int = Field(description="Its number in the job, from 1.")
    workflow: str
    id: str
    generation: int = Field(description="Its generation when the job was started.")
    outcome: Literal["open", "done", "skipped", "failed"]
    code: str = Field(description="Why it was skipped or failed: `finished`, or the name of an error.")
    message: str = Field(description="Why, as a sentence.")
    at: datetime | None = Field(description="When that was recorded; null while it is open.")


class BulkPreviewAnswer(Schema):
    """What a bulk job would do."""

    preview: BulkPreview


class BulkJobAnswer(Schema):
    """A bulk job."""

    job: BulkJob


class BulkJobsAnswer(Schema):
    """Bulk jobs."""

    jobs: list[BulkJob]
    next_cursor: str | None
    now: datetime


class BulkItemsAnswer(Schema):
    """Instances of a bulk job."""

    items: list[BulkItem]
    next_cursor: Cursor
