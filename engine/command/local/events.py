"""Read and send events, and answer requests."""

from __future__ import annotations

from engine.command import values
from engine.command.events import request_of
from engine.command.local.finding import find, origin
from engine.command.subcommand import Options
from engine.status import documents
from engine.status.documents import Document
from engine.status.gathering import database_now
from engine.status.record import events_of
from engine.steer import events, requests


def listed(options: Options) -> Document:
    instance = find(options["instance"])
    wanted = events_of(instance, with_payloads=options["full"])
    if options["state"] is not None:
        wanted = wanted.filter(state=options["state"])
    rows = list(wanted[: options["limit"]])
    return {
        "events": [documents.event(row, full=options["full"]) for row in rows],
        "total": events_of(instance).count(),
        "now": database_now(),
    }


def send(options: Options) -> Document:
    instance = find(options["instance"])
    payload = values.value(options, "payload")
    event = events.send_event(instance, options["type"], payload, options["dedup_key"], **origin(options))
    return {"instance": documents.instance(instance.refresh()), "event": documents.event(event, full=False)}


def answer(options: Options) -> Document:
    instance = find(options["instance"])
    event = requests.answer(
        instance,
        request_of(options),
        values.value(options, "answer"),
        comment=options["comment"],
        **origin(options),
    )
    return {"instance": documents.instance(instance.refresh()), "event": documents.event(event, full=False)}
