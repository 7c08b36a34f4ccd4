"""Render a step, for the page and the socket."""

from __future__ import annotations

from collections import OrderedDict

from django.template.loader import render_to_string

from engine.models import Instance
from studio.instance.steps.line import Line

# Ended steps do not change: for each change of a long instance, only open steps are rendered again.
_drawn: OrderedDict[tuple[object, ...], str] = OrderedDict()
_KEPT = 4_000


def step_html(line: Line, instance: Instance, *, inner: str = "") -> str:
    """Render a step. `inner` is the HTML of the steps inside it, if they are open."""
    is_kept = line.is_final and not inner
    kept = _drawn.get(line.state) if is_kept else None
    if kept is not None:
        return kept
    context = {"line": line, "instance": instance, "inner": inner}
    html = render_to_string("studio/instance/steps/step.html", context)
    if is_kept:
        _drawn[line.state] = html
        while len(_drawn) > _KEPT:
            _drawn.popitem(last=False)
    return html
