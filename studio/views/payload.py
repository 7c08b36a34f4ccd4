"""The full text of a stored value, as a download: never shown inline, whatever it holds."""

from __future__ import annotations

import re
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast
from django.http import Http404, HttpRequest, HttpResponse

from engine.models import Event, Instance, Step
from studio.views.methods import takes

_PART = re.compile(r"(step|event)-([0-9]{1,18})")


@takes("GET")
def payload(request: HttpRequest, name: str, id: str, what: str) -> HttpResponse:
    """Send params, output, error, `step-<seq>` (its output) or `event-<key>` (its payload)."""
    text = _text(name, id, what)
    if text is None:
        raise Http404
    return HttpResponse(
        text,
        content_type="application/json",
        headers={
            "Content-Disposition": f'attachment; filename="{id}-{what}.json"',
            "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
        },
    )


def _text(name: str, id: str, what: str) -> str | None:
    instance = Instance.objects.filter(workflow=name, id=id).defer("params", "output", "error").first()
    if instance is None:
        return None
    if what in ("params", "output", "error"):
        return _column(Instance.objects.filter(key=instance.key), what)
    found = _PART.fullmatch(what)
    if found is None or int(found[2]) > 2**63 - 1:
        return None
    kind, number = found[1], int(found[2])
    if kind == "event":
        return _column(Event.objects.filter(instance_id=instance.key, key=number), "payload")
    if number > 2**31 - 1:
        return None
    # A sensitive value is for the program alone.
    steps = Step.objects.filter(
        instance_id=instance.key, generation=instance.generation, seq=number, sensitive=False
    )
    return _column(steps, "output")


def _column(rows: Any, column: str) -> str | None:
    text: str | None = (
        rows.annotate(text_of=Cast(column, TextField())).values_list("text_of", flat=True).first()
    )
    return text
