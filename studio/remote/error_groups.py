"""Groups of errors: read them, and send what is decided about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from engine.command.errors import until
from engine.command.subcommand import Options
from engine.status.json_text import Document
from engine.values.errors import FailureNotFoundError
from studio.client import Client, NotFoundError
from studio.remote.refusals import require_workflow

PAGE = 200  # rows that the API answers at once


def listed(client: Client, options: Options) -> Document:
    rows, cursor = list[Any](), options["before"]
    while True:
        page = client.error_groups_page(
            workflow=options["workflow"],
            state=options["state"],
            query=options["query"],
            limit=min(options["limit"] - len(rows), PAGE),
            cursor=cursor,
        )
        rows += page["groups"]
        cursor = page["next_cursor"]
        if cursor is None or len(rows) >= options["limit"]:
            break
    if not rows and options["workflow"] is not None:
        require_workflow(client, options["workflow"])
    return {"groups": rows, "older": cursor, "now": page["now"]}


def show(client: Client, options: Options) -> Document:
    fingerprint = options["fingerprint"]
    with _named(fingerprint):
        found = client.error_group(fingerprint, full=options["full"] or options["json"])
        listed = client.error_group_instances_page(
            fingerprint, which=options["which"], limit=min(options["limit"], PAGE)
        )
        return {
            **found,
            "shares": client.error_group_shares(fingerprint),
            "trend": client.error_group_trend(fingerprint, unit=options["unit"]),
            "instances": listed["instances"],
            "paused": listed["paused"],
            "went_on": listed["went_on"],
        }


def resolve(client: Client, options: Options) -> Document:
    with _named(options["fingerprint"]):
        return {"group": client.resolve_error_group(options["fingerprint"], reason=options["reason"])}


def ignore(client: Client, options: Options) -> Document:
    limits = {"until": until(options), "count": options["count"]}
    with _named(options["fingerprint"]):
        found = client.ignore_error_group(options["fingerprint"], reason=options["reason"], **limits)
    return {"group": found}


def reopen(client: Client, options: Options) -> Document:
    with _named(options["fingerprint"]):
        return {"group": client.reopen_error_group(options["fingerprint"], reason=options["reason"])}


def note(client: Client, options: Options) -> Document:
    with _named(options["fingerprint"]):
        return {"note": client.add_error_group_note(options["fingerprint"], options["text"])}


@contextmanager
def _named(fingerprint: str) -> Iterator[None]:
    """Raise what the engine raises if there is no such group, or the token may not see it."""
    try:
        yield
    except NotFoundError:
        raise FailureNotFoundError(fingerprint) from None
