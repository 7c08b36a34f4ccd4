"""Name the instances that steps started by their params: an id made of hex digits says nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import Q

from engine.models import Instance
from engine.status.snapshot import with_prefixes
from engine.values.shown import display_status
from engine.values.states import FINAL
from studio.display import payloads
from studio.instance.steps.line import Line

PREFIX = 500  # characters that are read of params
SHOWN = 60  # and shown

_NONE = (None, "null", "{}", "[]")
_MADE_UP = re.compile(r"(?:^|-)[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$")  # by the engine

Name = tuple[str, str]  # workflow and id


def shown_id(of: str, params: str) -> str:
    """Return an id that somebody has chosen, or that is all there is to show."""
    return "" if params and _MADE_UP.search(of) else of


@dataclass(frozen=True, slots=True)
class Child:
    """An instance that a step started: the beginning of its params, with secrets masked, and how it shows."""

    params: str
    values: str  # of the params, without their keys
    status: str


def with_children(lines: Iterable[Line]) -> list[Line]:
    """Return the lines with the params of the instances that their steps started, with at most one query.

    While a step waits for such an instance, its line has the status of that.
    """
    found = list(lines)
    known = _children([line.relative for line in found if line.relative is not None])
    return [_named(line, known) for line in found]


def _named(line: Line, known: Mapping[Name, Child]) -> Line:
    child = known.get(line.relative) if line.relative is not None else None
    if line.relative is None:
        return line
    if child is None:
        return replace(line, child_id=shown_id(line.relative[1], ""))
    is_ahead = not line.is_final and child.status not in FINAL
    return replace(
        line,
        child=child.params,
        child_id=shown_id(line.relative[1], child.params),
        by=child.values or child.params,
        status=child.status if is_ahead else line.status,
    )


def params_of(names: Sequence[Name]) -> Mapping[Name, str]:
    """Return the beginnings of the params of instances. Those without params are left out."""
    return {name: child.params for name, child in _children(names).items() if child.params}


def _children(names: Sequence[Name]) -> Mapping[Name, Child]:
    by_workflow: dict[str, list[str]] = {}
    for workflow, of in names:
        by_workflow.setdefault(workflow, []).append(of)
    if not by_workflow:
        return {}
    wanted = Q()
    for workflow, ids in by_workflow.items():
        wanted |= Q(workflow=workflow, id__in=ids)
    rows = with_prefixes(Instance.objects.filter(wanted), "params", length=PREFIX)
    found = rows.values_list("workflow", "id", "params_text", "status", "waiting_for")
    return {(workflow, of): _child(*rest) for workflow, of, *rest in found}


def _child(params: str | None, status: str, waiting_for: str) -> Child:
    given = "" if params is None or params in _NONE else params
    said, values = (payloads.one_line(given, SHOWN), payloads.values_line(given)) if given else ("", "")
    return Child(said, values, display_status(status, waiting_for, asks=False))
