"""Start and find instances."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.db import connection

from engine.declare.batches import StartedMany, StartError, StartItem
from engine.declare.params import validate_params as validate_params
from engine.declare.registry import Workflow
from engine.models import Instance
from engine.steer import audit, by_name, notify, sql
from engine.steer.clock import ClockReading
from engine.values import between_steps
from engine.values.argument import Argument
from engine.values.errors import (
    InstanceExistsError,
    InstanceNotFoundError,
    InvalidNameError,
    InvalidParamsError,
    InvalidValueError,
    LimitError,
    RepriseError,
)
from engine.values.identity import check_instance_id, check_tags, new_instance_id
from engine.values.moments import check_start, read_moment
from engine.values.retention_rules import own_retention
from engine.values.serialization import decode

MAX_BATCH = 10_000
MAX_BATCH_BYTES = 64 * 1024 * 1024

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class New:
    """A checked instance, ready to be written. `params` are as they are stored."""

    id: str
    params: str
    tags: list[str]
    retention: dict[str, float | None] | None
    starts_at: datetime | None


def start(
    workflow: Workflow[P, Any],
    params: object = None,
    *,
    id: str | None = None,
    tags: Iterable[str] | None = None,
    retention: Mapping[str, Any] | None = None,
    at: datetime | str | None = None,
    by: object = None,
    reason: str = "",
) -> Instance:
    """Start an instance. In a transaction, it starts when the transaction commits.

    `retention` overrides how long this instance is kept after its end: durations by final status, None means forever.
    With `at`, it stays queued until then, and its timeout counts from then: an aware datetime or its text, within 365
    days. A moment in the past is now.

    Raises InstanceExistsError for an id in use, and for invalid input InvalidNameError, InvalidParamsError,
    InvalidValueError or LimitError; then nothing is written.
    """
    between_steps.refuse("start")
    new = _checked(workflow, params, id, tags, retention, at)
    created = insert(workflow, [new], audit.Cause.of(by, reason))
    if not created:
        raise InstanceExistsError(workflow.name, new.id)
    return created[0]


def get_or_start(
    workflow: Workflow[P, Any],
    id: str,
    params: object = None,
    *,
    tags: Iterable[str] | None = None,
    at: datetime | str | None = None,
    by: object = None,
    reason: str = "",
) -> tuple[Instance, bool]:
    """Return the instance with that id, started if there was none, and whether this call started it.

    An existing instance is returned as it is, whatever its params and its `at`. For invalid input, raises the errors
    of `start`.
    """
    between_steps.refuse("get_or_start")
    new, cause = _checked(workflow, params, id, tags, at=at), audit.Cause.of(by, reason)
    created = insert(workflow, [new], cause)
    return (created[0], True) if created else (get(workflow, new.id), False)


def get(workflow: Workflow[Any, Any], id: str) -> Instance:
    """Return the instance with that id. Raises InstanceNotFoundError, also for an invalid id."""
    between_steps.refuse("get")
    try:
        found = by_name.find(workflow.name, check_instance_id(id))
    except InvalidNameError:
        found = None
    if found is None:
        raise InstanceNotFoundError(workflow.name, id)
    return found


def start_many(
    workflow: Workflow[P, Any], items: Iterable[StartItem[P]], *, by: object = None, reason: str = ""
) -> StartedMany:
    """Start up to 10,000 instances in one statement. Invalid items and ids in use are reported, not fatal.

    Raises LimitError for too many items or too many bytes of params in total; then nothing is written.
    """
    between_steps.refuse("start_many")
    cause, errors = audit.Cause.of(by, reason), list[StartError]()
    accepted: dict[int, New] = {}
    clock = ClockReading()
    with Argument("items"):
        for index, item in enumerate(_bounded(items)):
            try:
                accepted[index] = _checked_item(workflow, item, clock)
            except RepriseError as problem:
                errors.append(_error(index, _id_of(item), problem))
    # Of two items with the same id, the first wins; for the second the id is in use, as it would be in two calls.
    first_by_id = {new.id: new for new in reversed(accepted.values())}
    with Argument("items"):
        created = {row.id: row for row in insert(workflow, list(first_by_id.values()), cause)}
    for index, new in accepted.items():
        if first_by_id[new.id] is not new or new.id not in created:
            errors.append(_error(index, new.id, InstanceExistsError(workflow.name, new.id)))
    started = [
        created[new.id] for new in accepted.values() if first_by_id[new.id] is new and new.id in created
    ]
    return StartedMany(started, sorted(errors, key=lambda error: error["index"]))


def check_many(workflow: Workflow[P, Any], items: Sequence[StartItem[P]]) -> list[StartError]:
    """Return what `start_many` would report about these items now. Nothing is written."""
    errors, ids, clock = list[StartError](), dict[str, int](), ClockReading()
    for index, item in enumerate(_bounded(items)):
        try:
            new = _checked_item(workflow, item, clock)
        except RepriseError as problem:
            errors.append(_error(index, _id_of(item), problem))
            continue
        if new.id in ids:
            errors.append(_error(index, new.id, InstanceExistsError(workflow.name, new.id)))
        ids.setdefault(new.id, index)
    taken = Instance.objects.filter(workflow=workflow.name, id__in=list(ids)).values_list("id", flat=True)
    errors += [_error(ids[one], one, InstanceExistsError(workflow.name, one)) for one in taken]
    return sorted(errors, key=lambda error: error["index"])


def checked_items(workflow: Workflow[P, Any], items: Iterable[StartItem[P]]) -> list[New]:
    """Return up to 10,000 items, ready to be written.

    Raises what `start` raises for the first that is not valid, or InstanceExistsError for the second of two with one
    id. A note on the error, which a traceback shows, says which item it is.
    """
    clock, found, size = ClockReading(), dict[str, New](), 0
    with Argument("items"):
        for item in _bounded(items):
            try:
                new = _checked_item(workflow, item, clock)
                if new.id in found:
                    raise InstanceExistsError(workflow.name, new.id)
            except RepriseError as error:
                error.add_note(f"items[{len(found)}]")
                raise
            found[new.id] = new
            size += len(new.params)
            _check_size(size)
    return [*found.values()]


def _checked(
    workflow: Workflow[Any, Any],
    params: object,
    id: str | None,
    tags: Iterable[str] | None,
    retention: Mapping[str, Any] | None = None,
    at: object = None,
    clock: ClockReading | None = None,
) -> New:
    with Argument("id"):
        chosen = new_instance_id() if id is None else check_instance_id(id)
    with Argument("retention"):
        own = own_retention(workflow.retention, retention)
    with Argument("at"):
        moment = None if at is None else check_start(read_moment(at), (clock or ClockReading()).now)
    with Argument("params"):
        text = validate_params(workflow, params)
    with Argument("tags"):
        return New(chosen, text, check_tags(tags), own, moment)


def _checked_item(workflow: Workflow[Any, Any], item: StartItem[Any], clock: ClockReading) -> New:
    unknown = set(item) - {"params", "id", "tags", "retention", "at"} if isinstance(item, Mapping) else {"?"}
    if unknown:
        rule = "An item is a dict with params, id, tags, retention and at, all optional."
        raise InvalidValueError("$", "invalid_item", rule, what="item")
    return _checked(
        workflow,
        item.get("params"),
        item.get("id"),
        item.get("tags"),
        item.get("retention"),
        item.get("at"),
        clock,
    )


def _bounded(items: Iterable[StartItem[Any]]) -> Iterable[StartItem[Any]]:
    """Yield the items up to the limit, so that an endless iterable is refused too."""
    for count, item in enumerate(items, start=1):
        if count > MAX_BATCH:
            raise LimitError("number of items", count, MAX_BATCH, advice="Start them in several calls.")
        yield item


def _check_size(size: int) -> None:
    if size > MAX_BATCH_BYTES:
        raise LimitError(
            "size of all params", size, MAX_BATCH_BYTES, unit="characters", advice="Split the batch."
        )


def insert(workflow: Workflow[Any, Any], batch: Sequence[New], cause: audit.Cause) -> list[Instance]:
    """Write and return the instances whose ids are free."""
    _check_size(sum(len(new.params) for new in batch))
    rows = _execute(workflow, batch, cause)
    return [_instance(workflow, new, cause, rows[new.id]) for new in batch if new.id in rows]


def _execute(
    workflow: Workflow[Any, Any], batch: Sequence[New], cause: audit.Cause
) -> dict[str, tuple[Any, ...]]:
    values: dict[str, Any] = {
        "workflow": workflow.name,
        "started_by": cause.actor,
        "user_key": cause.user_key,
        "reason": cause.reason,
        "code": workflow.fingerprint,
        "timeout": workflow.timeout,
        "ids": [new.id for new in batch],
        "params": [new.params for new in batch],
        "tags": [json.dumps(new.tags) for new in batch],
        "retentions": [None if new.retention is None else json.dumps(new.retention) for new in batch],
        "moments": [new.starts_at for new in batch],
        "max_payload": notify.MAX_PAYLOAD,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql.START, values)
        return {row[0]: row[1:] for row in cursor.fetchall()}


def _instance(workflow: Workflow[Any, Any], new: New, cause: audit.Cause, written: Sequence[Any]) -> Instance:
    """Build the written instance without reading it again; all other fields have the model's defaults."""
    key, wake_at, deadline_at, created_at, starts_at = written
    instance = Instance(
        key=key,
        workflow=workflow.name,
        id=new.id,
        params=decode(new.params),
        tags=new.tags,
        started_by=cause.actor,
        code=workflow.fingerprint,
        retention=new.retention,
        wake_at=wake_at,
        deadline_at=deadline_at,
        created_at=created_at,
        starts_at=starts_at,
    )
    instance._state.adding, instance._state.db = False, connection.alias
    return instance


_CODES: Sequence[tuple[type[RepriseError], str]] = (
    (InstanceExistsError, "id_in_use"),
    (InvalidNameError, "invalid_name"),
    (InvalidParamsError, "invalid_params"),
    (LimitError, "limit"),
    (InvalidValueError, "invalid_value"),
)


def _error(index: int, id: str | None, problem: RepriseError) -> StartError:
    code = next((code for kind, code in _CODES if isinstance(problem, kind)), "invalid")
    return {"index": index, "id": id, "code": code, "message": str(problem)}


def _id_of(item: object) -> str | None:
    given = item.get("id") if isinstance(item, Mapping) else None
    return given if isinstance(given, str) else None
