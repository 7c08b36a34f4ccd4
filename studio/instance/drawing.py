"""Render the pieces of the instance page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.template.loader import render_to_string

from studio.access.permissions import Verb, allowed, require
from studio.approvals import queries as inbox
from studio.approvals.entry import Entry
from studio.frame.pieces import Drawing, Piece
from studio.instance.page import InstancePage
from studio.instance.steps.html import step_html

_PIECES = (
    "head",
    "generations",
    "why",
    "requests",
    "code",
    "actions",
    "timeline",
    "result",
    "children",
    "events",
    "logs",
    "audit-log",
    "steps-note",
    "event-hint",
)


def draw_instance(found: InstancePage, user: Any, *, typed: Entry | None = None) -> Drawing:
    """Render the instance page for a user. `typed` is a request with a rejected answer."""
    require(user, Verb.VIEW, found.instance.workflow)
    asked = _requests(found, user, typed)
    context = {
        "d": found,
        "instance": found.instance,
        "may_act": allowed(user, Verb.OPERATE, found.instance.workflow),
        "requests": asked,
        "place": "",
        "audit_log": found.record.audit,
    }
    pieces = {
        name: Piece(render_to_string(f"studio/instance/pieces/{name}.html", context)) for name in _PIECES
    }
    # Replace the whole sentence: a morph would keep a ticking time and move it to the wrong place.
    pieces["why"] = replace(pieces["why"], swap="outerHTML")
    steps = {line.anchor: Piece(step_html(line, found.instance)) for line in found.lines}
    return Drawing(
        {**pieces, **steps},
        order=tuple(steps),
        is_done=found.instance.is_finished,
        say=_said_of(found),
        is_personal=bool(asked),
        forms=tuple(one.ref for one in asked),
    )


def _requests(found: InstancePage, user: Any, typed: Entry | None) -> list[Entry]:
    """Read its open requests; replace one by `typed`."""
    is_asking = found.has_requests and not found.is_past
    asked = inbox.of_instance(found.instance, user) if is_asking else []
    return [typed if typed is not None and one.ref == typed.ref else one for one in asked]


def _said_of(found: InstancePage) -> str:
    number = found.generations.newest
    again = f" in generation {number}, after a restart" if number > 1 else ""
    return f"{found.instance.id} is now {found.status}{again}"
