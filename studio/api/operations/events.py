"""Events of instances: lists, and sending them."""

from __future__ import annotations

from django.http import HttpResponse
from ninja import Query, Router

from engine.models import Instance
from engine.status import documents
from engine.status.gathering import database_now
from engine.status.record import events_of
from engine.steer import events
from engine.values.states import Action
from studio.access import denied_audit
from studio.access.denied_audit import Subject
from studio.access.permissions import Verb, allowed
from studio.api.answers import answer
from studio.api.auth import ApiRequest, refusal
from studio.api.fields import EventsWanted, Send, SendTo
from studio.api.operation import reads, writes
from studio.api.operations.instances import ONE
from studio.api.reading import cut, instance_of
from studio.api.schemas.history import EventsAnswer
from studio.api.schemas.messages import SentAnswer

router = Router(tags=["Events"])


@reads(router, f"{ONE}/events", EventsAnswer, summary="List the events of an instance")
def list_events(request: ApiRequest, name: str, id: str, wanted: Query[EventsWanted]) -> HttpResponse:
    """Its events with their payloads, newest first."""
    instance = instance_of(name, id)
    rows = events_of(instance, with_payloads=True)
    if wanted.state is not None:
        rows = rows.filter(state=wanted.state)
    if wanted.cursor is not None:
        rows = rows.filter(key__lt=int(wanted.cursor))
    page, cursor = cut(rows, wanted.limit)
    found = {
        "events": [documents.event(row, full=True) for row in page],
        "total": events_of(instance).count(),
        "next_cursor": cursor,
        "now": database_now(),
    }
    return answer(found)


@writes(router, f"{ONE}/events", SentAnswer, action="send_event", status=202, summary="Send an event")
def send_event(request: ApiRequest, name: str, id: str, body: Send) -> HttpResponse:
    """Buffer an event for an instance. One wait consumes it, or a later wait of its type does."""
    return _send(request, instance_of(name, id), body)


def _check_sender(request: ApiRequest, body: SendTo) -> None:
    holder = request.auth
    if allowed(holder, Verb.OPERATE, body.workflow):
        return
    if allowed(holder, Verb.VIEW, body.workflow):
        denied_audit.record(Action.SEND_EVENT, Subject(body.workflow, body.id), holder)
    raise refusal(holder, Verb.OPERATE, body.workflow)


@writes(
    router,
    "/events",
    SentAnswer,
    action="",
    verb=Verb.VIEW,
    asks=Verb.OPERATE,  # for the workflow in the body
    status=202,
    check=_check_sender,
    summary="Send an event to the instance in the body",
)
def send_event_to(request: ApiRequest, body: SendTo) -> HttpResponse:
    """For senders whose address cannot change."""
    return _send(request, instance_of(body.workflow, body.id), body)


def _send(request: ApiRequest, instance: Instance, body: Send) -> HttpResponse:
    event = events.send_event(
        instance, body.type, body.payload, body.dedup_key, by=request.auth, reason=body.reason
    )
    document = {
        "instance": documents.instance(instance.refresh()),
        "event": documents.event(event, full=False),
    }
    return answer(document, 202)
