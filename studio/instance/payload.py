"""Download the full text of a stored value. It is never shown inline."""

from __future__ import annotations

import re
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast
from django.http import Http404, HttpRequest, HttpResponse

from engine.models import Event, Generation, Instance, Step
from engine.values.serialization.envelope import masked_text
from studio.access.permissions import Verb
from studio.frame.guard import guard

_EVENT = re.compile(r"event-([0-9]{1,18})")
_STEP = re.compile(r"step-([0-9]{1,9})(?:-g([0-9]{1,9}))?")
_KEPT = re.compile(r"(params|output|error)-g([0-9]{1,9})")


@guard(get=Verb.VIEW)
def payload(request: HttpRequest, name: str, id: str, what: str) -> HttpResponse:
    """Send params, output, error, pause_reason, a step's output or an event's payload. Secrets are masked.

    `step-<seq>` is a step of the first generation, `step-<seq>-g<number>` one of a later generation, `event-<key>` an
    event, and `output-g<number>` the output of an earlier generation. What these addresses show never changes;
    `params-g<number>` are those of an earlier generation that a restart has changed.
    """
    text = _text(name, id, what)
    if text is None:
        raise Http404
    return HttpResponse(
        masked_text(text),
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
    if what in ("params", "output", "error", "pause_reason"):
        return _column(Instance.objects.filter(key=instance.key), what)
    if found := _EVENT.fullmatch(what):
        return _column(Event.objects.filter(instance_id=instance.key, key=int(found[1])), "payload")
    if found := _KEPT.fullmatch(what):
        kept = Generation.objects.filter(instance_id=instance.key, number=int(found[2]))
        return _column(kept, found[1])
    if found := _STEP.fullmatch(what):
        # Sensitive values are never shown.
        steps = Step.objects.filter(instance_id=instance.key, seq=int(found[1]), sensitive=False)
        return _column(steps.filter(generation=int(found[2] or 1)), "output")
    return None


def _column(rows: Any, column: str) -> str | None:
    text: str | None = (
        rows.annotate(text_of=Cast(column, TextField())).values_list("text_of", flat=True).first()
    )
    return text
