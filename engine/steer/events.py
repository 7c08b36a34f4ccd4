"""Send events to instances."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from django.db import connection, transaction

from engine.declare import messages
from engine.declare.secrets import are_equal
from engine.models import Event, Instance
from engine.steer import audit, sql
from engine.steer.lifecycle import lock
from engine.values import between_steps
from engine.values.argument import Argument
from engine.values.errors import DedupConflictError, InstanceFinishedError, LimitError
from engine.values.identity import check_dedup_key, check_event_type
from engine.values.serialization import decode, encode
from engine.values.states import Action, InstanceStatus, allows

MAX_BUFFERED = 10_000
REFUSING = sorted(str(status) for status in InstanceStatus if not allows(Action.SEND_EVENT, status))


def send_event(
    instance: Instance,
    type: str | messages.Event[Any],
    payload: Any = None,
    dedup_key: str | None = None,
    *,
    by: object = None,
    reason: str = "",
) -> Event:
    """Buffer an event for the instance and wake it. Exactly one wait consumes it, in the order of sending.

    A repeated `dedup_key` returns the first event, even if the instance has finished since; with another type or
    payload it raises DedupConflictError. Raises InstanceFinishedError, InstanceNotFoundError, and for invalid input
    InvalidNameError, InvalidParamsError, InvalidValueError or LimitError; then nothing is written.
    """
    between_steps.refuse("send_event")
    event, text = _checked(instance, type, payload, dedup_key)
    cause = audit.Cause.of(by, reason)
    event.sent_by = cause.actor
    with transaction.atomic() if cause.is_somebody else nullcontext():
        status = buffer(event, text)
        if status is None:
            earlier, status = _once_more(instance, event, text)
            if earlier is not None:
                return earlier
        if cause.is_somebody:
            data = {"type": event.type}
            audit.write(Action.SEND_EVENT, [instance], cause, before=status, after=status, data=data)
    return event


def _checked(
    instance: Instance, type: str | messages.Event[Any], payload: Any, dedup_key: str | None
) -> tuple[Event, str]:
    with Argument("type"):
        name = check_event_type(type.name if isinstance(type, messages.Event) else type)
    declared = type if isinstance(type, messages.Event) else messages.declared_events.get(name)
    with Argument("payload"):
        text = encode(payload, what="payload") if declared is None else declared.encode(payload)
    with Argument("dedup_key"):
        key = None if dedup_key is None else check_dedup_key(dedup_key)
    return Event(instance_id=instance.key, type=name, payload=decode(text), dedup_key=key), text


def buffer(event: Event, payload: str, *, limit: int | None = None) -> str | None:
    """Write the event and its signal. Return the status of the instance, or None if nothing was written."""
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SEND,
            {
                "instance": event.instance_id,
                "type": event.type,
                "payload": payload,
                "dedup_key": event.dedup_key,
                "sent_by": event.sent_by,
                "limit": MAX_BUFFERED if limit is None else limit,
                "refusing": REFUSING,
            },
        )
        written = cursor.fetchone()
    if written is None:
        return None
    event.key, event.received_at, status, *_ = written
    event._state.adding, event._state.db = False, connection.alias
    return str(status)


def _once_more(instance: Instance, event: Event, text: str) -> tuple[Event | None, str]:
    """Find out why an event was not written, and write it if the instance has been restarted meanwhile.

    Return the earlier event with its dedup key, or the status of the instance. Raises InstanceFinishedError,
    DedupConflictError, or LimitError if the buffer is full.
    """
    with transaction.atomic():
        row = lock(instance)
        if (earlier := _earlier(event)) is not None:
            return earlier, row.status
        if row.status in REFUSING:
            raise InstanceFinishedError(row.workflow, row.id, row.status, "sending an event")
        status = buffer(event, text)
        if status is None:
            advice = f"Instance {row} does not consume its events as fast as they arrive; send again later."
            raise LimitError("number of buffered events", MAX_BUFFERED + 1, MAX_BUFFERED, advice=advice)
        return None, status


def _earlier(event: Event) -> Event | None:
    """Return the earlier event with this dedup key. Raises DedupConflictError if it is a different one."""
    if event.dedup_key is None:
        return None
    found = Event.objects.filter(instance_id=event.instance_id, dedup_key=event.dedup_key).first()
    if found and (found.type != event.type or not are_equal(found.payload, event.payload)):
        instance = found.instance
        raise DedupConflictError(instance.workflow, instance.id, event.dedup_key)
    return found
