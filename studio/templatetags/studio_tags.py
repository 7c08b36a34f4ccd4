"""How times, statuses and values are written."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from engine.status import bidi, status_line
from engine.status.facts import Servers
from engine.status.sentence import Code, Moment, Part, Sentence
from engine.steer.requests import is_answer
from engine.values.durations import format_duration
from engine.values.retention_rules import Retention
from studio.audit.words import deed, verb_name
from studio.display import json_tree, payloads
from studio.display.at_least import AtLeast
from studio.display.status import PARTS, Look
from studio.display.times import first_text

register = template.Library()
register.filter("deed", deed)
register.filter("verb_name", verb_name)

_UNKNOWN = Look("queued", "circle-dashed", "idle")


@register.simple_tag
def icon(name: str) -> SafeString:
    """Draw an icon of the sprite; it only decorates, a word stands beside it."""
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>', static("vendor/lucide.svg"), name
    )


@register.simple_tag
def chip(status: str, word: str = "", size: str = "") -> SafeString:
    """Draw a status: icon, word, colour and outline at once."""
    look = PARTS.get(status, _UNKNOWN)
    return format_html(
        '<span class="chip s-{} {} {}">{}{}</span>',
        status,
        look.outline,
        size,
        icon(look.icon),
        word or status.replace("_", " "),
    )


@register.simple_tag
def status_icon(status: str) -> SafeString:
    return icon(PARTS.get(status, _UNKNOWN).icon)


@register.simple_tag
def favicon(status: str) -> str:
    return static(f"icons/{status}.svg" if status else "icons/reprise.svg")


@register.simple_tag
def at(moment: datetime | None, kind: str = "moment") -> SafeString:
    """Write a time that the browser keeps true: `moment`, `clock`, `ago`, `since` or `until`."""
    if moment is None:
        return SafeString("")
    # The script owns the text, so a patch leaves it alone (hx-morph-skip-children) and changes the attributes.
    return format_html(
        '<time class="{}" data-kind="{}" datetime="{}" hx-morph-skip-children>{}</time>',
        "at" if kind in ("moment", "clock") else "tick",
        kind,
        moment.isoformat(),
        first_text(moment, kind),
    )


@register.filter
def took(duration: timedelta | None) -> str:
    return "" if duration is None else format_duration(max(duration, timedelta(0)))


@register.simple_tag
def sentence(parts: Sentence) -> SafeString:
    """Write a status line: text escaped, names as code, times ticking."""
    return format_html_join("", "{}", ((_part(part),) for part in parts))


def _part(part: Part) -> str | SafeString:
    if isinstance(part, Moment):
        return at(part.at, part.kind)
    return format_html("<code>{}</code>", bidi.isolated(part.text)) if isinstance(part, Code) else part


@register.filter
def count(n: int | None) -> str:
    """Write a count, and of one that was stopped that there may be more."""
    return str(n) if isinstance(n, AtLeast) else f"{n or 0:,}"


@register.filter
def busy(servers: Servers) -> str:
    """Say how many slots of workers are taken."""
    return status_line.busy(servers)


@register.filter
def get(mapping: dict[str, Any], key: str) -> Any:
    return mapping.get(key, 0)


@register.simple_tag
def tree(payload: payloads.Payload) -> SafeString:
    """Draw a JSON value with folding that needs no script."""
    return json_tree.draw(payload.tree, is_root=True) if payload.tree is not None else SafeString("")


@register.filter
def slug_with(seq: int, number: int) -> str:
    """Make the id of something that belongs to an attempt."""
    return f"{seq}-{number}"


@register.simple_tag
def sprite_of(name: str) -> str:
    return f"{static('vendor/lucide.svg')}#{name}"


@register.filter
def isolated(text: object) -> str:
    """Write what somebody else wrote, so that it turns only itself around."""
    return bidi.isolated(str(text))


@register.filter
def kept_for(rules: Retention) -> str:
    """Say how long finished instances are kept."""
    spans = {status: getattr(rules, status) for status in ("complete", "errored", "terminated")}
    said = {
        status: format_duration(span) if span is not None else "for ever" for status, span in spans.items()
    }
    if len(set(said.values())) == 1:
        only = said["complete"]
        return only if only == "for ever" else f"{only} after its end"
    return " · ".join(f"{status} {span}" for status, span in said.items())


@register.filter
def less(n: int, by: int) -> int:
    return n - by


@register.filter
def thousands(n: int) -> str:
    return f"{n:,}"


@register.filter
def paragraphs(text: str) -> list[str]:
    """Cut a docstring into paragraphs; where its lines end means nothing on a page."""
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


_QUOTED = re.compile(r"(``?)([^`]+)\1")


@register.filter
def with_code(text: str) -> SafeString:
    """Write a line of a docstring, what stands in backticks as code."""
    parts = _QUOTED.split(text)
    words = format_html_join(
        "", "{}<code>{}</code>", ((parts[at], parts[at + 2]) for at in range(0, len(parts) - 1, 3))
    )
    return format_html("{}{}", words, parts[-1])


@register.filter
def event_name(type: str) -> str:
    """Name an event: the engine's own types mean nothing to people."""
    return f"answer to step {type.rpartition(':')[2]}" if is_answer(type) else type
