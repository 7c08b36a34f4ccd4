"""Name the instances that steps started by their params: an id made of hex digits says nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from django.db.models import Q

from engine.models import Instance
from engine.status.snapshot import with_prefixes
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


def with_children(lines: Iterable[Line]) -> list[Line]:
    """Return the lines with the params of the instances that their steps started, with at most one query."""
    found = list(lines)
    said = params_of([line.relative for line in found if line.relative is not None])
    return [line if line.relative is None else _named(line, said.get(line.relative, "")) for line in found]


def _named(line: Line, params: str) -> Line:
    return replace(line, child=params, child_id=shown_id(line.relative[1] if line.relative else "", params))


def params_of(names: Sequence[Name]) -> Mapping[Name, str]:
    """Return the beginnings of the params of instances, with secrets masked. Those without params are left out."""
    by_workflow: dict[str, list[str]] = {}
    for workflow, of in names:
        by_workflow.setdefault(workflow, []).append(of)
    if not by_workflow:
        return {}
    wanted = Q()
    for workflow, ids in by_workflow.items():
        wanted |= Q(workflow=workflow, id__in=ids)
    rows = with_prefixes(Instance.objects.filter(wanted), "params", length=PREFIX)
    texts = rows.values_list("workflow", "id", "params_text")
    return {
        (workflow, of): payloads.one_line(text, SHOWN) for workflow, of, text in texts if text not in _NONE
    }
