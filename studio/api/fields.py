"""What requests to the API may hold: bodies, and what addresses ask for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from ninja import Field, Schema
from pydantic import AfterValidator, BeforeValidator, ConfigDict, StrictBool, StrictInt, WithJsonSchema
from pydantic.config import JsonDict

from engine.steer import pauses
from engine.steer.audit import MAX_REASON
from engine.steer.notes import MAX_NOTE
from engine.values.identity import MAX_DEDUP_KEY, MAX_EVENT_TYPE, MAX_TAG, MAX_TAGS
from engine.values.moments import EXAMPLE
from engine.values.states import EventState, StepKind, StepStatus
from studio.api.cursors import Cursor, InOrder, Named, Place
from studio.frame import addresses

MOST = 200  # rows on a page
MOST_PARTS = 1_000  # steps of a record, as on the command line

WORKFLOW_NAME = f"^{addresses.WorkflowName.regex}$"
INSTANCE_ID = f"^{addresses.InstanceId.regex}$"
TAGS: JsonDict = {
    "type": "array",
    "maxItems": MAX_TAGS,
    "items": {"type": "string", "minLength": 1, "maxLength": MAX_TAG},
}
DURATION: JsonDict = {
    "description": "Seconds, or a text such as 7d.",
    "type": ["string", "number", "null"],
}
DURATIONS: JsonDict = {
    "type": "object",
    "properties": dict.fromkeys(("complete", "errored", "terminated"), DURATION),
    "additionalProperties": False,
}


def _string(pattern: str) -> JsonDict:
    return {"anyOf": [{"type": "string", "pattern": pattern}, {"type": "null"}]}


INSTANCE_ID_OR_NULL = _string(INSTANCE_ID)


def _sized(most: int) -> JsonDict:
    return {"minLength": 1, "maxLength": most}


class Body(Schema):
    """A body with known fields only: a wrong name is an error, not ignored."""

    model_config = ConfigDict(extra="forbid")


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("It contains NUL.")
    return text


Text = Annotated[str, AfterValidator(_storable)]
# The engine checks these, with its own words; here they are for the document.
Reason = Annotated[
    str,
    Field(description="Why, for the audit trail.", json_schema_extra={"maxLength": MAX_REASON}),
]
JsonValue = Annotated[Any, WithJsonSchema({"description": "Any JSON value."})]


class Start(Body):
    """An instance to start."""

    params: JsonValue = Field(None, description="What its handler gets. The workflow has the schema.")
    id: str | None = Field(
        None, description="Its id. Without one, it gets a UUIDv7.", json_schema_extra=INSTANCE_ID_OR_NULL
    )
    tags: list[str] | None = Field(
        None, description="Up to 50.", json_schema_extra={"anyOf": [TAGS, {"type": "null"}]}
    )
    retention: dict[str, Any] | None = Field(
        None,
        description="How long it is kept after its end: durations by final status; null means forever.",
        json_schema_extra={"anyOf": [DURATIONS, {"type": "null"}]},
        examples=[{"complete": "7d", "errored": None}],
    )
    at: str | None = Field(
        None,
        description="When it starts, with its offset from UTC, within 365 days. It is queued until then, and its "
        "timeout counts from then. A moment in the past is now.",
        json_schema_extra={"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
        examples=[EXAMPLE],
    )


class StartWithReason(Start):
    """An instance to start, and why."""

    reason: Reason = ""


class StartBatch(Body):
    """Up to 100 instances to start. Wrong ones are reported and do not stop the others."""

    items: Annotated[
        list[Any], WithJsonSchema({"type": "array", "maxItems": 100, "items": Start.model_json_schema()})
    ] = Field(description="At most 100 instances.")
    reason: Reason = ""


class Because(Body):
    """Why something is done."""

    reason: Reason = ""


class ResumeWorkflow(Because):
    """How much of a paused workflow goes on, and why."""

    count: StrictInt | None = Field(
        None,
        description="Release so many held instances, the oldest first. Without it, the pause ends.",
        json_schema_extra={
            "anyOf": [{"type": "integer", "minimum": 1, "maximum": pauses.MOST}, {"type": "null"}]
        },
    )


class Terminate(Because):
    """How an instance is terminated."""

    # The operation refuses one without a reason, so that the refusal has our words.
    model_config = ConfigDict(json_schema_extra={"required": ["reason"]})

    rollback: StrictBool = Field(False, description="Roll back its steps first.")


class Wake(Because):
    """Which sleeps end."""

    step: str | None = Field(None, description="Only the sleep of this name. Without one, all that are open.")
    count: StrictInt = Field(1, ge=1, le=1_000_000, description="Which sleep of that name.")


class Retry(Because):
    """Which steps run again."""

    step: str | None = Field(
        None,
        description="Only the step of this name, of those that wait for a decision. Without one, all of them.",
    )
    count: StrictInt = Field(1, ge=1, le=1_000_000, description="Which step of that name.")


class Decide(Because):
    """Which step is decided, and why."""

    # The operation refuses one without a reason, so that the refusal has our words.
    model_config = ConfigDict(json_schema_extra={"required": ["step", "reason"]})

    step: str = Field(description="The name of the step.")
    count: StrictInt = Field(1, ge=1, le=1_000_000, description="Which step of that name.")


class Skip(Decide):
    """Which step is completed, with which output, and why."""

    output: JsonValue = Field(None, description="What the handler gets, as the step would have returned it.")


class RestartFrom(Body):
    """Where a restart begins: at the start, or at a step."""

    from_step: str | None = Field(None, description="Keep every step that started before this one.")
    count: StrictInt = Field(1, ge=1, le=1_000_000, description="Which step of that name.")
    kind: StepKind = Field(StepKind.DO, description="What kind of step.")


class Restart(RestartFrom):
    """A restart, and why."""

    model_config = ConfigDict(json_schema_extra={"required": ["reason"]})

    params: JsonValue = Field(
        None, description="Other params for this generation, if it begins at the start. Left out, they stay."
    )
    keys: Literal["new", "same"] = Field(
        "new", description="Idempotency keys of the steps that run again: new ones, or those that they had."
    )
    reason: Reason = ""


class NewNote(Body):
    """A note for people."""

    text: str = Field(
        description="Plain text. `@name` mentions a user.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_NOTE},
    )


class Send(Body):
    """An event for an instance."""

    type: str = Field(description="What the workflow waits for.", json_schema_extra=_sized(MAX_EVENT_TYPE))
    payload: JsonValue = Field(None, description="What the handler gets.")
    dedup_key: str | None = Field(
        None,
        description="Repeated sends with this key are one event.",
        json_schema_extra={"anyOf": [{"type": "string", **_sized(MAX_DEDUP_KEY)}, {"type": "null"}]},
    )
    reason: Reason = ""


class SendTo(Send):
    """An event, and the instance that it is for."""

    workflow: str = Field(json_schema_extra={"pattern": WORKFLOW_NAME})
    id: str = Field(json_schema_extra={"pattern": INSTANCE_ID})


class Answer(Body):
    """An answer to a request."""

    answer: JsonValue = Field(description="The answer. The request has its schema.")
    comment: str = Field("", description="For the workflow.", json_schema_extra={"maxLength": MAX_REASON})


# Queries


class ReasonWanted(Schema):
    """Why something is deleted, where the body may not arrive."""

    reason: Reason = Field("", description="Why, for the audit trail. Needed here or in the body.")


class Page(Schema):
    """Which part of a list."""

    limit: int = Field(50, ge=1, le=MOST, description="Rows on the page.")
    cursor: Cursor | None = None


class RequestsPage(Page):
    """Which part of a list of requests."""

    cursor: Place | None = None


EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC)


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("Write it with its offset from UTC, as 2026-11-24T09:00:00Z.")
    # All rows are between these, and every database and driver can read them.
    if moment.year < EARLIEST.year:
        return EARLIEST
    # PostgreSQL takes no offsets of 16 hours and more, as Python does.
    return LATEST if moment.year > LATEST.year else moment.astimezone(UTC)


def _written(given: object) -> object:
    # Pydantic would read a number as seconds since 1970.
    if isinstance(given, str) and "-" not in given[1:]:
        raise ValueError("Write it with its offset from UTC, as 2026-11-24T09:00:00Z.")
    return given


Moment = Annotated[datetime, BeforeValidator(_written), AfterValidator(_aware)]
SortWanted = Literal["started", "-started", "finished", "-finished", "duration", "-duration"]
StatusWanted = Literal[
    "open",
    "finished",
    "queued",
    "running",
    "waiting",
    "waiting_for_pause",
    "paused",
    "complete",
    "errored",
    "terminated",
]


class InstancesWanted(Page):
    """Which instances, and in which order."""

    cursor: InOrder | None = None
    query: str | None = Field(
        None, max_length=2_000, description="A search, such as `status:open params.region=eu started:<2h`."
    )
    sort: SortWanted = Field(
        "-started", description="What they are ordered by; with `-` the last or longest first."
    )

    workflow: Text | None = Field(None, max_length=64, description="The name of a workflow.")
    status: list[StatusWanted] = Field([], description="Statuses; open and finished are groups of them.")
    tag: Text | None = Field(None, max_length=100, description="A tag that they have.")
    q: Text | None = Field(None, max_length=100, description="How the id begins, ignoring case.")
    created_after: Moment | None = Field(None, description="Those created later.")
    created_before: Moment | None = Field(None, description="Those created earlier.")


class StepsWanted(Page):
    """Which steps of an instance."""

    generation: int | None = Field(None, ge=1, le=2**31 - 1, description="An earlier generation.")
    parent: int | None = Field(
        None, ge=0, le=2**31 - 1, description="Those inside this step; 0: those at the top."
    )
    status: list[StepStatus] = Field([], description="Any of these.")


class EventsWanted(Page):
    """Which events of an instance."""

    state: EventState | None = Field(None, description="Those in this state.")


class LogsWanted(Page):
    """Which log lines of an instance."""

    generation: int | None = Field(None, ge=1, le=2**31 - 1, description="An earlier generation.")
    step: int | None = Field(None, ge=1, le=2**31 - 1, description="The number of the step that wrote them.")


class GenerationWanted(Schema):
    """Which generation of an instance."""

    generation: int | None = Field(None, ge=1, le=2**31 - 1, description="An earlier generation.")


class RecordWanted(Schema):
    """How much of an instance."""

    generation: int | None = Field(None, ge=1, le=2**31 - 1, description="An earlier generation.")
    full: bool = Field(False, description="With outputs, payloads and tracebacks.")
    limit: int = Field(50, ge=1, le=MOST_PARTS, description="The newest steps, events, children and actions.")
    hide_done_items: bool = Field(
        False, description="Leave out the items of maps and parallels that are complete or cancelled."
    )


class HealthWanted(Schema):
    """From when on something counts as a problem."""

    max_due: float = Field(60, ge=0, le=31_536_000, description="Seconds that something may be due.")
    min_workers: int = Field(1, ge=0, le=10_000, description="Workers that must run.")
    max_paused: int | None = Field(None, ge=0, le=2**31 - 1, description="Instances paused by the engine.")


class AuditWanted(Page):
    """Which rows of the audit trail."""

    person: Text | None = Field(None, max_length=150, description="The name of who acted, or how it begins.")
    verb: Text | None = Field(None, max_length=32, description="What was done, such as pause.")
    outcome: Literal["done", "denied"] | None = Field(None, description="Whether it was allowed.")
    workflow: Text | None = Field(None, max_length=64, description="The name of a workflow.")
    id: Text | None = Field(None, max_length=100, description="The id of an instance.")
    since: Moment | None = Field(None, description="Rows from then on.")
    until: Moment | None = Field(None, description="Rows before then.")


class RequestsWanted(RequestsPage):
    """Which open requests."""

    workflow: Text | None = Field(None, max_length=64, description="The name of a workflow.")
    mine: bool = Field(False, description="Only those that the holder of the token may answer.")


class SchedulesWanted(Page):
    """Which schedules."""

    cursor: Named | None = None
    workflow: Text | None = Field(None, max_length=64, description="The name of a workflow.")
