"""What a page may watch, and how it is drawn piece by piece. The page, the socket and the slow reconcile share it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict
from django.template.loader import render_to_string
from django.urls import reverse

from engine.models import Instance
from engine.status import search
from engine.status.capacity import capacity_of
from engine.status.servers import all_servers
from studio import audit_log, inbox, queries, rows, timetable
from studio.access import Verb, allowed, require, visible
from studio.attention import attention
from studio.converters import WorkflowName
from studio.display_status import GROUPS, LOOKS
from studio.drawn_instance import draw_key
from studio.filters import Filter, cursor, keys
from studio.health import health
from studio.pieces import Drawing, Piece, more_piece

_WORKFLOW = re.compile(rf"workflow:({WorkflowName.regex})")
_INSTANCE = re.compile(r"instance:([0-9]{1,18})")


class UnknownViewError(Exception):
    """A page asked for something that cannot be watched."""


EVERYTHING = Filter()
WHOLE_LOG = audit_log.Wanted()


@dataclass(frozen=True, slots=True)
class LiveView:
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
    audit: audit_log.Wanted = WHOLE_LOG

    @classmethod
    def of(cls, query: str | QueryDict) -> LiveView:
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
            return cls("audit", audit=audit_log.Wanted.of(given), top=top)
        if text == "list":
            shown = tuple(keys(given.get("keys", ""), 100))
            return cls("list", wanted=Filter.of(given), shown=shown, top=cursor(given.get("top", "")) or 0)
        raise UnknownViewError(text)

    @property
    def workflow(self) -> str | None:
        """The workflow that all of it is about, where the view itself names one."""
        return self.name or self.wanted.workflow or self.audit.workflow or None

    @property
    def seconds_between(self) -> float:
        """How long changes gather before they are drawn."""
        return 0.25 if self.kind == "instance" else 1.0

    def concerns(self, changed: frozenset[int] | None) -> bool:
        return changed is None or self.kind != "instance" or self.key in changed


def draw(view: LiveView, user: Any) -> Drawing:
    """Draw every piece of a view for a person. A view whose subject is gone has no pieces.

    Raises RefusedError for who may not see it.
    """
    require(user, Verb.VIEW, view.workflow)
    return {
        "home": _home,
        "workflows": _workflows,
        "schedules": _schedules,
        "workflow": _workflow,
        "list": _list,
        "approvals": _approvals,
        "audit": _audit,
        "instance": _instance,
    }[view.kind](view, user)


def count_piece(user: Any) -> dict[str, Piece]:
    """Draw what every page has: the number of requests that wait for this person."""
    count = inbox.count_mine(user)
    return {"approvals-count": Piece(render_to_string("partials/approvals-count.html", {"count": count}))}


def _home(view: LiveView, user: Any) -> Drawing:
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


def _workflows(view: LiveView, user: Any) -> Drawing:
    overviews = queries.overviews(visible(user, search.workflow_names()))
    context = {"overviews": overviews, "may_start": allowed(user, Verb.OPERATE, None)}
    return Drawing({"workflow-table": Piece(render_to_string("partials/workflow-table.html", context))})


def _workflow(view: LiveView, user: Any) -> Drawing:
    (overview,) = queries.overviews([view.name])
    places = capacity_of([view.name]).get(view.name)
    context = {"overview": overview, "wanted": Filter(workflow=view.name), "places": places}
    return Drawing(
        {
            "workflow-counts": Piece(render_to_string("partials/workflow-counts.html", context)),
            "schedules": _timetable(user, view.name),
            **_row_pieces(queries.rows_by_key(view.shown)),
        }
    )


def _schedules(view: LiveView, user: Any) -> Drawing:
    return Drawing({"schedules": _timetable(user)})


def _timetable(user: Any, workflow: str = "") -> Piece:
    may_act = allowed(user, Verb.OPERATE, workflow or None)
    seen = [one for one in timetable.entries(workflow) if allowed(user, Verb.VIEW, one.row.workflow)]
    context = {"schedules": seen, "workflow": workflow, "may_act": may_act}
    return Piece(render_to_string("partials/schedules.html", context))


def _list(view: LiveView, user: Any) -> Drawing:
    newer = queries.count_newer(view.wanted, view.top) if view.top else 0
    above = above_list(view.wanted, newer, queries.narrowed(view.wanted))
    return Drawing({**above, **_row_pieces(queries.rows_by_key(view.shown))})


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


def _audit(view: LiveView, user: Any) -> Drawing:
    newer = audit_log.count_newer(view.audit, view.top)
    return Drawing({"more": more_piece(newer, reverse("audit") + view.audit.query())})


def _approvals(view: LiveView, user: Any) -> Drawing:
    shown = inbox.entry_of(view.ref, user) if view.ref else None
    return draw_approvals(inbox.box_of(view.box, user), shown, user)


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


def _instance(view: LiveView, user: Any) -> Drawing:
    return draw_key(view.key or 0, user, upto=view.upto)
