"""Read groups of errors, and write what is decided about them."""

from __future__ import annotations

from engine.command.errors import until
from engine.command.local.finding import actor, check_workflow, origin
from engine.command.subcommand import Options
from engine.status import documents, failures
from engine.status.documents import Document
from engine.status.failures import document
from engine.status.gathering import database_now
from engine.steer import failures as deciding
from engine.steer.failure_notes import add_note

PAGE = 200  # groups that are read at once


def listed(options: Options) -> Document:
    if options["workflow"] is not None:
        check_workflow(options["workflow"])
    rows, place = list[Document](), options["before"]
    while True:
        found = failures.groups(
            workflow=options["workflow"],
            state="" if options["state"] == "all" else options["state"],
            query=options["query"] or "",
            limit=min(options["limit"] - len(rows), PAGE),
            after=place,
        )
        rows += [document.group(one) for one in found.groups]
        place = found.next
        if place is None or len(rows) >= options["limit"]:
            return {"groups": rows, "older": place, "now": database_now()}


def show(options: Options) -> Document:
    fingerprint = options["fingerprint"]
    found = document.details(
        failures.group(fingerprint), failures.kin(fingerprint), full=options["full"] or options["json"]
    )
    which = {"limit": min(options["limit"], PAGE), "after": None}
    listed = document.instances(fingerprint, options["which"], **which)
    return (
        found
        | document.common(fingerprint)
        | document.bars(fingerprint, options["unit"])
        | {"instances": listed["instances"], "paused": listed["paused"], "went_on": listed["went_on"]}
    )


def resolve(options: Options) -> Document:
    deciding.resolve(options["fingerprint"], **origin(options))
    return _decided(options)


def ignore(options: Options) -> Document:
    given = {"until": until(options), "count": options["count"]}
    deciding.ignore(options["fingerprint"], **given, **origin(options))
    return _decided(options)


def reopen(options: Options) -> Document:
    deciding.reopen(options["fingerprint"], **origin(options))
    return _decided(options)


def note(options: Options) -> Document:
    row = add_note(options["fingerprint"], options["text"], by=actor(options))
    return {"note": documents.action(row)}


def _decided(options: Options) -> Document:
    return {"group": document.group(failures.group(options["fingerprint"]))}
