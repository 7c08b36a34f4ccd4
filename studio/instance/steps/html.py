"""A step as it is drawn, on the page and over the socket."""

from __future__ import annotations

from collections import OrderedDict

from django.template.loader import render_to_string

from engine.models import Instance
from studio.instance.steps.line import Line

# What has ended does not change: of a long instance only the open steps are drawn anew at each change.
_drawn: OrderedDict[tuple[object, ...], str] = OrderedDict()
_KEPT = 4_000


def step_html(line: Line, instance: Instance, *, inner: str = "") -> str:
    """Draw a step; `inner` is what is within it, drawn, where that shall be open."""
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
