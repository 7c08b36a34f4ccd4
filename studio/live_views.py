"""What a page may watch, and how it is drawn piece by piece. The page, the socket and the slow reconcile share it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from django.http import QueryDict
from django.template.loader import render_to_string
from django.urls import reverse

from engine import search
from engine.models import Instance
from engine.status.places import places_of
from engine.status.servers import all_servers
from studio import audit_log, deleted_instances, inbox, instance_page, queries, rows, timetable
from studio.access import Verb, allowed, require, visible
from studio.attention import attention
from studio.converters import WorkflowName
from studio.display_status import GROUPS, LOOKS
from studio.filters import Filter, cursor, keys
from studio.health import health
from studio.step_rows import step_html

_TIME_TEXT = re.compile(r"(?<=hx-morph-skip-children>)[^<]*(?=</time>)")
_WORKFLOW = re.compile(rf"workflow:({WorkflowName.regex})")
_INSTANCE = re.compile(r"instance:([0-9]{1,18})")


class UnknownTopicError(Exception):
    """A page asked for something that cannot be watched."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a page with an id of its own, so that it is patched in its place."""

    html: str
    swap: str = "outerMorph"

    @property
    def print(self) -> str:
        """What must differ for it to be sent again. The text of a time is the browser's, which keeps it ticking."""
        return _TIME_TEXT.sub("", self.html)


@dataclass(frozen=True, slots=True)
class Drawing:
    """All pieces of a topic at one moment. `order` is that of the steps, which may grow; `is_done` ends the topic."""

    pieces: Mapping[str, Piece]
    order: tuple[str, ...] = ()
    is_done: bool = False
    say: str = ""
    is_personal: bool = False  # another person with the same rights may see something else
    forms: tuple[str, ...] = ()  # of the requests that are drawn, by their references

    @property
    def tag(self) -> str:
        text = "\0".join(f"{name}\0{piece.print}" for name, piece in self.pieces.items())
        return hashlib.sha256(text.encode()).hexdigest()[:20]


EVERYTHING = Filter()
WHOLE_TRAIL = audit_log.Wanted()


@dataclass(frozen=True, slots=True)
class Topic:
    """`home`, `workflows`, `schedules`, `workflow:<name>`, `list` with its filter and rows, `approvals`
    with its box and the request that is shown, `audit` with its filter, or `instance:<key>`."""

    kind: str
    name: str = ""
    key: int | None = None
    wanted: Filter = EVERYTHING
    shown: tuple[int, ...] = ()
    top: int = 0
    upto: int | None = None
    box: str = ""
    ref: str = ""
    trail: audit_log.Wanted = WHOLE_TRAIL

    @classmethod
    def of(cls, query: str | QueryDict) -> Topic:
        """Read it from a query string."""
        given = QueryDict(query[:4_000]) if isinstance(query, str) else query
        text = given.get("topic", "")
        if text in ("home", "workflows", "schedules"):
            return cls(text)
        if found := _WORKFLOW.fullmatch(text):
            return cls("workflow", name=found[1], shown=tuple(keys(given.get("keys", ""), 100)))
        if found := _INSTANCE.fullmatch(text):
            return cls("instance", key=int(found[1]), upto=cursor(given.get("upto", "")))
        if text == "approvals":
            box = given.get("box", "")
            return cls("approvals", box=box if box in inbox.BOXES else "mine", ref=given.get("r", "")[:50])
        if text == "audit":
            top = cursor(given.get("top", "")) or 0
            return cls("audit", trail=audit_log.Wanted.of(given), top=top)
        if text == "list":
            shown = tuple(keys(given.get("keys", ""), 100))
            return cls("list", wanted=Filter.of(given), shown=shown, top=cursor(given.get("top", "")) or 0)
        raise UnknownTopicError(text)

    @property
    def workflow(self) -> str | None:
        """The workflow that all of it is about, where the topic itself names one."""
        return self.name or self.wanted.workflow or self.trail.workflow or None

    @property
    def seconds_between(self) -> float:
        """How long changes gather before they are drawn."""
        return 0.25 if self.kind == "instance" else 1.0

    def concerns(self, changed: frozenset[int] | None) -> bool:
        return changed is None or self.kind != "instance" or self.key in changed


def draw(topic: Topic, user: Any) -> Drawing:
    """Draw every piece of a topic for a person. A topic whose subject is gone has no pieces.

    Raises RefusedError for who may not see it.
    """
    require(user, Verb.VIEW, topic.workflow)
    return {
        "home": _home,
        "workflows": _workflows,
        "schedules": _schedules,
        "workflow": _workflow,
        "list": _list,
        "approvals": _approvals,
        "audit": _audit,
        "instance": _instance,
    }[topic.kind](topic, user)


def count_piece(user: Any) -> dict[str, Piece]:
    """Draw what every page has: the number of requests that wait for this person."""
    count = inbox.count_mine(user)
    return {"approvals-count": Piece(render_to_string("partials/approvals-count.html", {"count": count}))}


def frame(pieces: Mapping[str, Piece]) -> str:
    """Write pieces as one message for htmx."""
    return "".join(partial(name, piece) for name, piece in pieces.items())


def partial(target: str, piece: Piece) -> str:
    return f'<hx-partial hx-target="#{escape(target)}" hx-swap="{piece.swap}">{piece.html}</hx-partial>'


def _home(topic: Topic, user: Any) -> Drawing:
    overviews = queries.overviews(visible(user, search.workflow_names()))
    found = attention([one.name for one in overviews])
    context = {
        "overviews": overviews,
        "attention": found,
        "rows": rows.rows_of(found.instances),
        "heading": "Workflows",
        "may_start": allowed(user, Verb.OPERATE, None),
        "health": health(found, all_servers()),
    }
    return Drawing(
        {
            "health": Piece(render_to_string("partials/health.html", context)),
            "attention": Piece(render_to_string("partials/attention.html", context)),
            "workflow-table": Piece(render_to_string("partials/workflow-table.html", context)),
        }
    )


def _workflows(topic: Topic, user: Any) -> Drawing:
    overviews = queries.overviews(visible(user, search.workflow_names()))
    context = {"overviews": overviews, "may_start": allowed(user, Verb.OPERATE, None)}
    return Drawing({"workflow-table": Piece(render_to_string("partials/workflow-table.html", context))})


def _workflow(topic: Topic, user: Any) -> Drawing:
    (overview,) = queries.overviews([topic.name])
    places = places_of([topic.name]).get(topic.name)
    context = {"overview": overview, "wanted": Filter(workflow=topic.name), "places": places}
    return Drawing(
        {
            "workflow-counts": Piece(render_to_string("partials/workflow-counts.html", context)),
            "schedules": _timetable(user, topic.name),
            **_row_pieces(queries.rows_by_key(topic.shown)),
        }
    )


def _schedules(topic: Topic, user: Any) -> Drawing:
    return Drawing({"schedules": _timetable(user)})


def _timetable(user: Any, workflow: str = "") -> Piece:
    may_act = allowed(user, Verb.OPERATE, workflow or None)
    seen = [one for one in timetable.entries(workflow) if allowed(user, Verb.VIEW, one.row.workflow)]
    context = {"schedules": seen, "workflow": workflow, "may_act": may_act}
    return Piece(render_to_string("partials/schedules.html", context))


def _list(topic: Topic, user: Any) -> Drawing:
    newer = queries.count_newer(topic.wanted, topic.top) if topic.top else 0
    above = above_list(topic.wanted, newer, queries.narrowed(topic.wanted))
    return Drawing({**above, **_row_pieces(queries.rows_by_key(topic.shown))})


def above_list(wanted: Filter, newer: int, among: Sequence[int] | None) -> dict[str, Piece]:
    """Draw what stands above the rows: the statuses with their counts, and what came since.

    The counts are those of what is searched for, by the keys of `queries.narrowed`; without these a search has none.
    """
    is_counted = among is not None or not wanted.q
    counts = strip_counts(wanted) if among is None else queries.counts_among(wanted, among)
    strip = [
        {
            "name": name,
            "n": sum(counts.get(one, 0) for one in GROUPS.get(name, (name,))) if is_counted else None,
            "query": wanted.query(status=name),
            "is_chosen": name == wanted.status,
        }
        for name in (*GROUPS, *LOOKS)
        if counts.get(name) or name == wanted.status
    ]
    context = {"strip": strip, "wanted": wanted, "all_query": wanted.query(status="")}
    return {
        "strip": Piece(render_to_string("partials/strip.html", context)),
        "more": more_piece(newer, reverse("instances") + wanted.query()),
    }


def more_piece(newer: int, address: str) -> Piece:
    """Draw how much came since the page was made, and where it is shown."""
    return Piece(render_to_string("partials/more.html", {"newer": newer, "address": address}))


def strip_counts(wanted: Filter) -> dict[str, int]:
    """Count by status over the workflow of the filter, or over all."""
    names = [wanted.workflow] if wanted.workflow else search.workflow_names()
    total: dict[str, int] = {}
    for counts in queries.counts_by_status(names).values():
        for status, n in counts.items():
            total[status] = total.get(status, 0) + n
    return total


def _row_pieces(instances: list[Instance]) -> dict[str, Piece]:
    return {
        f"i-{row.instance.key}": Piece(render_to_string("partials/row.html", {"row": row}))
        for row in rows.rows_of(instances)
    }


def _audit(topic: Topic, user: Any) -> Drawing:
    newer = audit_log.count_newer(topic.trail, topic.top)
    return Drawing({"more": more_piece(newer, reverse("audit") + topic.trail.query())})


def _approvals(topic: Topic, user: Any) -> Drawing:
    shown = inbox.entry_of(topic.ref, user) if topic.ref else None
    return draw_approvals(inbox.box_of(topic.box, user), shown, user)


def draw_approvals(box: inbox.Box, shown: inbox.Entry | None, user: Any) -> Drawing:
    """Draw the inbox of a person, with one request beside the list."""
    context = {
        "box": box,
        "entry": shown,
        "place": box.name,
        "mine": inbox.count_mine(user),
        "open": inbox.count_open(),
        "most": inbox.COUNTED,
    }
    pieces = {
        name: Piece(render_to_string(f"partials/approvals/{name}.html", context))
        for name in ("boxes", "inbox", "pane")
    }
    return Drawing(pieces, is_personal=True, forms=(shown.ref,) if shown else ())


def _instance(topic: Topic, user: Any) -> Drawing:
    try:
        found = instance_page.of_key(topic.key or 0, topic.upto)
    except Instance.DoesNotExist:
        return _gone(topic.key or 0, user)
    return draw_instance(found, user)


def _gone(key: int, user: Any) -> Drawing:
    """Say over the page as it was that the instance is there no more, and take away what could be done to it."""
    tombstone = deleted_instances.of_key(key)
    if tombstone is None:
        return Drawing({}, is_done=True)
    require(user, Verb.VIEW, tombstone.workflow)
    said = render_to_string("partials/gone.html", {"tombstone": tombstone})
    actions = '<div id="actions" class="steer" hidden></div>'
    pieces = {"flash": Piece(said, "innerHTML"), "actions": Piece(actions)}
    return Drawing(pieces, is_done=True, say=f"{tombstone.id} was deleted")


def draw_instance(
    found: instance_page.InstancePage, user: Any, *, typed: inbox.Entry | None = None
) -> Drawing:
    """Draw the page of an instance for a person; `typed` is a request with what was typed, and refused."""
    require(user, Verb.VIEW, found.instance.workflow)
    is_asking = found.has_requests and not found.is_past
    asked = inbox.of_instance(found.instance, user) if is_asking else []
    if typed is not None:
        asked = [typed if one.ref == typed.ref else one for one in asked]
    may_act = allowed(user, Verb.OPERATE, found.instance.workflow)
    context = {
        "d": found,
        "instance": found.instance,
        "may_act": may_act,
        "requests": asked,
        "place": "",
        "trail": found.record.audit,
    }
    pieces = {
        name: Piece(render_to_string(f"partials/instance/{name}.html", context))
        for name in (
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
            "trail",
            "steps-note",
            "event-hint",
        )
    }
    # Another sentence, not the same one with other words: a time that a morph keeps would jump to its new place in it.
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


def _said_of(found: instance_page.InstancePage) -> str:
    number = found.generations.newest
    again = f" in generation {number}, after a restart" if number > 1 else ""
    return f"{found.instance.id} is now {found.status}{again}"
