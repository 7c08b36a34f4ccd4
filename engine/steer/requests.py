"""Requests to people: which are open, who may answer them, and the answers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast, Concat

from engine.declare.secrets import decrypted
from engine.models import Event, Instance, OpenRequest, Step
from engine.steer import audit, events
from engine.steer.audit import Cause
from engine.steer.clock import ClockTimestamp
from engine.steer.lifecycle import lock
from engine.values import between_steps
from engine.values.argument import Argument
from engine.values.errors import (
    InstanceFinishedError,
    InvalidNameError,
    InvalidParamsError,
    LimitError,
    RequestAnsweredError,
    RequestClosedError,
    RequestForbiddenError,
    RequestNotFoundError,
    SecretKeyError,
)
from engine.values.identity import REQUEST_TYPE, request_type
from engine.values.json_schema import check
from engine.values.secret_places import encrypted, refused_masks
from engine.values.serialization import JSON, decode, encode
from engine.values.serialization.envelope import STORED
from engine.values.states import FINAL, StepKind, StepStatus

ANSWER = "answer"  # the verb in the audit trail
MAX_COMMENT = audit.MAX_REASON
GROUP = "group:"
# A worker sees an answer only after its commit, and a worker that sees none after the deadline times the request out. A
# commit takes a moment, so answers in the last second are refused.
COMMIT = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Asked:
    """The recorded request: the question, and who may answer."""

    message: str
    schema: dict[str, Any] | None
    assignees: tuple[str, ...]

    @classmethod
    def of(cls, step: Step) -> Asked:
        options: Any = step.options if isinstance(step.options, dict) else {}
        return cls(options.get("message", ""), options.get("schema"), tuple(options.get("assignees") or ()))


# What `open_requests` returns, for statements that go on after it: the requests `r` with their instances `i`. OFFSET 0
# keeps the joins in this order: each request, which are few, leads to its instance, and only those that are left are
# looked for among the events.
OPEN_SQL = """
 CROSS JOIN LATERAL (
       SELECT key, workflow, id, status, waiting_for, generation, ends_as FROM engine_instance
        WHERE key = r.instance_id OFFSET 0) AS i
 WHERE i.generation = r.generation AND i.ends_as = '' AND i.status <> ALL (%(final)s)
   AND (r.expires_at IS NULL OR r.expires_at > clock_timestamp() + %(commit)s) AND NOT EXISTS (
       SELECT FROM engine_event e
        WHERE e.instance_id = i.key AND e.dedup_key = %(type)s || r.generation::text || ':' || r.seq::text)
"""
# The other waiting requests `r`: they are over, but no worker has recorded it yet. Most have expired, which they say
# themselves; of the others, the instance and then its events are looked at.
ENDING_SQL = """
 WHERE r.expires_at <= clock_timestamp() + %(commit)s
    OR NOT EXISTS (
       SELECT FROM engine_instance i
        WHERE i.key = r.instance_id AND i.generation = r.generation AND i.ends_as = ''
          AND i.status <> ALL (%(final)s))
    OR EXISTS (
       SELECT FROM engine_event e
        WHERE (e.instance_id, e.dedup_key)
              >= (r.instance_id, %(type)s || r.generation::text || ':' || r.seq::text)
          AND (e.instance_id, e.dedup_key)
              <= (r.instance_id, %(type)s || r.generation::text || ':' || r.seq::text)
          AND e.dedup_key IS NOT NULL)
"""
OPEN_VALUES: dict[str, Any] = {
    "final": [str(status) for status in FINAL],
    "commit": COMMIT,
    "type": REQUEST_TYPE,
}


def open_requests() -> QuerySet[OpenRequest]:
    """Return the requests that can be answered now: not answered, expired or withdrawn, nor about to be."""
    return _waiting().filter(_is_open())


def _waiting() -> QuerySet[OpenRequest]:
    number = Concat(Cast("generation", TextField()), Value(":", TextField()), Cast("seq", TextField()))
    return OpenRequest.objects.alias(type=Concat(Value(REQUEST_TYPE, TextField()), number))


def _is_open() -> Q:
    # The type of the event is its dedup key.
    given = Event.objects.filter(instance_id=OuterRef("instance_id"), dedup_key=OuterRef("type"))
    is_present = Q(generation=F("instance__generation"), instance__ends_as="")
    return is_present & ~Q(instance__status__in=FINAL) & ~_has_expired("expires_at") & ~Q(Exists(given))


_COUNT_PUT_TO = f"""
SELECT count(*) FROM (
    SELECT FROM (
        SELECT * FROM engine_open_request
         WHERE assignees && %(names)s::varchar[] OR (%(nobody)s AND assignees = '{{}}') OFFSET 0) AS r
    {OPEN_SQL}
    LIMIT %(most)s) AS counted
"""  # noqa: S608


_COUNT_OPEN = f"""
SELECT count(*) FROM (SELECT FROM engine_open_request r {OPEN_SQL} LIMIT %(most)s) AS counted
"""  # noqa: S608


def count_open(*, most: int) -> int:
    """Count those that `open_requests` returns, up to a number."""
    return _count(_COUNT_OPEN, {"most": most})


def count_put_to(names: Collection[str], *, nobody: bool, most: int) -> int:
    """Count those that `put_to` returns, up to a number."""
    return _count(_COUNT_PUT_TO, {"names": [*names], "nobody": nobody, "most": most})


def _count(statement: str, values: dict[str, Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, OPEN_VALUES | values)
        (count,) = cursor.fetchone()
    return int(count)


def put_to(names: Collection[str], *, nobody: bool) -> QuerySet[OpenRequest]:
    """Return the open requests with one of these assignees; with `nobody`, also those without assignees."""
    return open_requests().filter(Q(assignees__overlap=[*names]) | (Q(assignees=[]) if nobody else Q()))


def _has_expired(moment: str) -> Q:
    return Q(**{f"{moment}__isnull": False, f"{moment}__lte": ClockTimestamp() + COMMIT})


def names_of(user: Any) -> frozenset[str]:
    """Return the assignees that match this user: the name, and the groups as `group:<name>`.

    Nothing matches a program that acts for no person (`is_person` is False), whatever its name.
    """
    if not getattr(user, "is_person", True):
        return frozenset()
    held: frozenset[str] | None = getattr(user, "_reprise_names", None)
    if held is None:
        has_groups = user.pk is not None and hasattr(user, "groups")  # a custom user need not have any
        groups = user.groups.values_list("name", flat=True) if has_groups else ()
        held = user._reprise_names = frozenset({user.get_username(), *(GROUP + name for name in groups)})
    return held


def is_put_to(asked: Asked, user: Any) -> bool:
    """Return whether this user may answer: an assignee, anyone if there are no assignees, and always a superuser."""
    is_superuser = getattr(user, "is_superuser", False)
    return is_superuser or not asked.assignees or not names_of(user).isdisjoint(asked.assignees)


def answer(
    instance: Instance,
    request: str | int,
    value: Any,
    *,
    by: object,
    comment: str = "",
    reason: str = "",
    check: Callable[[Asked], None] | None = None,
) -> Event:
    """Answer a request of an instance, by its name or its step's number. The first answer counts.

    Secrets in the answer's type are stored encrypted. `check` is called with the request that is answered; what it
    raises refuses the answer.

    `by` is a Django user, who must be one of the assignees, or the name of a program, which is trusted. A value that
    does not match the recorded schema raises InvalidParamsError, and the request still waits. Raises
    RequestAnsweredError (who was first, and when), RequestClosedError if it has expired or was withdrawn,
    InstanceFinishedError, RequestForbiddenError, RequestNotFoundError and InstanceNotFoundError; then nothing is
    written. Commit soon: an answer committed after the deadline is too late.
    """
    between_steps.refuse("answer")
    cause = _cause(by, comment, reason)
    step = find(instance, request)
    _refuse_unless_open(instance, step)
    asked = Asked.of(step)
    if hasattr(by, "get_username") and not is_put_to(asked, by):
        raise RequestForbiddenError(step.name, cause.actor, asked.assignees)
    if check is not None:
        check(asked)
    with Argument("answer"):
        value = _encrypted(value, asked.schema)
    with transaction.atomic():
        row = lock(instance)
        # Checked again under the lock: another answer, or the worker, may have been faster.
        _refuse_unless_open(row, find(row, step.seq))
        event = _send(row, step, {"value": value, "comment": comment}, cause.actor)
        data = {"request": step.name, "seq": step.seq, "generation": step.generation}
        audit.write(ANSWER, [row], cause, before=row.status, after=row.status, data=data)
    return event


def find(instance: Instance, request: str | int) -> Step:
    """Return a request of the current generation: by number, or by name the first that waits, else the last one."""
    rows = Step.objects.filter(
        instance_id=instance.key, generation=instance.generation, kind=StepKind.REQUEST
    )
    by_what = {"seq": request} if isinstance(request, int) else {"name": request}
    waiting = set(open_requests().filter(instance_id=instance.key).values_list("seq", flat=True))
    found = list(rows.filter(**by_what).order_by("seq"))
    if not found:
        names = rows.filter(seq__in=waiting).order_by("seq").values_list("name", flat=True)
        raise RequestNotFoundError(instance.workflow, instance.id, request, list(names))
    return next((step for step in found if step.seq in waiting), found[-1])


def answer_to(step: Step) -> Event | None:
    """Return the answer to a request, whether or not the workflow has received it."""
    return Event.objects.filter(instance_id=step.instance_id, dedup_key=type_of(step)).first()


def is_same_answer(event: Event, value: object) -> bool:
    """Return whether this value equals the recorded answer, as far as its secrets can be read here."""
    given = event.payload.get("value") if isinstance(event.payload, dict) else None
    try:
        return decrypted(given) == value
    except SecretKeyError:
        return False


def type_of(step: Step) -> str:
    """Return the type, and dedup key, of the event that answers a request."""
    return request_type(step.kept_from or step.generation, step.seq)


def is_answer(type: str) -> bool:
    """Return whether an event of this type answers a request."""
    return type.startswith(REQUEST_TYPE)


def _cause(by: object, comment: str, reason: str) -> Cause:
    with Argument("comment"):
        if not isinstance(comment, str) or len(comment) > MAX_COMMENT:
            what = "length of the comment"
            raise LimitError(what, len(str(comment)), MAX_COMMENT, unit="characters")
        audit.check_reason(comment)
    cause = Cause.of(by, reason or comment)
    if not cause.is_somebody:
        raise InvalidNameError("the name of who answers", by, "Pass a user, or the name of a program.")
    return cause


def _refuse_unless_open(row: Instance, step: Step) -> None:
    given = answer_to(step)
    if given is not None:
        comment = given.payload.get("comment", "") if isinstance(given.payload, dict) else ""
        raise RequestAnsweredError(step.name, given.sent_by, given.received_at, comment)
    if step.status == StepStatus.ERRORED:
        raise RequestClosedError(step.name, "it has expired")
    if row.is_finished:
        raise InstanceFinishedError(row.workflow, row.id, row.status, "answering")
    if row.ends_as:
        raise RequestClosedError(step.name, "the instance is being rolled back and then ends")
    if Step.objects.filter(_has_expired("wake_at"), pk=step.pk).exists():
        raise RequestClosedError(step.name, "it has expired")
    if step.status != StepStatus.WAITING:
        raise RequestClosedError(step.name, "the workflow has withdrawn it")


def _encrypted(value: Any, schema: dict[str, Any] | None) -> JSON:
    """Check an answer, and encrypt the secrets in it. Raises InvalidParamsError."""
    plain = check(value, schema)
    masks = refused_masks(plain, schema)
    if masks:
        raise InvalidParamsError(masks, what="values of the answer")
    return encrypted(plain, schema)


def _send(row: Instance, step: Step, payload: dict[str, JSON], actor: str) -> Event:
    with Argument("answer"):
        text = encode(payload, what="answer", envelopes=STORED)
    # The event type is also the dedup key, so the database itself accepts only one answer.
    one = type_of(step)
    event = Event(instance_id=row.key, type=one, payload=decode(text), dedup_key=one, sent_by=actor)
    # An answer is accepted even if the buffer of events is full.
    if events.buffer(event, text, limit=2 * events.MAX_BUFFERED) is None:
        raise LimitError("number of buffered events", 2 * events.MAX_BUFFERED + 1, 2 * events.MAX_BUFFERED)
    return event
