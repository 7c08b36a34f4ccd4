"""How times, statuses and values are written."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from engine.models import Audit
from engine.status import bidi, status_line
from engine.status.facts import Servers
from engine.status.sentence import Code, Moment, Part, Sentence
from engine.steer import retention, schedules
from engine.steer.requests import ANSWER, is_answer
from engine.values.durations import format_duration
from engine.values.retention_rules import Retention
from studio import payloads
from studio.at_least import AtLeast
from studio.display_status import PARTS, Look

register = template.Library()

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
        _first_text(moment, kind),
    )


def _first_text(moment: datetime, kind: str) -> str:
    now = timezone.now()
    if kind == "clock":
        return f"{moment:%H:%M:%S} UTC"
    if kind == "moment":
        return f"{moment:%Y-%m-%d %H:%M} UTC"
    if kind == "until":
        return f"in {format_duration(moment - now)}" if moment > now else "due"
    passed = max(now - moment, timedelta(0))
    return _ago(int(passed.total_seconds())) if kind == "ago" else format_duration(passed)


def _ago(seconds: int) -> str:
    """Say it roughly: what is past need not tick."""
    if seconds < 60:
        return "just now" if seconds < 2 else f"{seconds} s ago"
    if seconds < 3600:
        return f"{seconds // 60} min ago"
    return f"{seconds // 3600} h ago" if seconds < 86_400 else f"{seconds // 86_400} d ago"


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
    return _node(payload.tree, is_root=True) if payload.tree is not None else SafeString("")


def _node(node: payloads.Node, *, is_root: bool = False) -> SafeString:
    key = (
        format_html('<span class="k">{}</span>: ', bidi.isolated(node.key))
        if node.key is not None
        else SafeString("")
    )
    if node.kind == "secret":
        about = "Stored encrypted; only the workflow can read it."
        return format_html(
            '{}<span class="s" title="{}">{}</span> <span class="muted">secret</span>', key, about, node.text
        )
    if node.kind not in ("object", "array"):
        return format_html('{}<span class="{}">{}</span>', key, node.kind, node.text)
    opening, closing = ("{", "}") if node.kind == "object" else ("[", "]")
    if not node.children:
        return format_html("{}{}{}{}", key, opening, node.more, closing)
    items = format_html_join("", "<li>{}</li>", ((_node(child),) for child in node.children))
    if node.more:
        items += format_html('<li class="muted">{}</li>', node.more)
    if node.key is None and not node.is_folded:
        return format_html("{}<ul>{}</ul>{}", opening, items, closing)
    return format_html(
        "<details{}><summary>{}{} {}</summary><ul>{}</ul></details>",
        SafeString("") if node.is_folded and not is_root else mark_safe(" open"),
        key,
        opening + closing,
        node.text,
        items,
    )


@register.filter
def slug_with(seq: int, number: int) -> str:
    """Make the id of something that belongs to an attempt."""
    return f"{seq}-{number}"


@register.simple_tag
def sprite_of(name: str) -> str:
    return f"{static('vendor/lucide.svg')}#{name}"


DEEDS = {
    "start": "started",
    "pause": "paused",
    "resume": "resumed",
    "terminate": "terminated",
    "send_event": "sent an event",
    "accept_code": "accepted the new code",
    "retry_rollback": "retried the rollback",
    "restart": "restarted",
    "delete": "deleted",
    "answer": "answered",
    "schedule-pause": "paused the schedule",
    "schedule-resume": "resumed the schedule",
    "schedule-run": "ran the schedule",
    "retention": "deleted instances past their retention",
    "sign_in": "signed in",
}


@register.filter
def isolated(text: object) -> str:
    """Write what somebody else wrote, so that it turns only itself around."""
    return bidi.isolated(str(text))


@register.filter
def deed(entry: Audit) -> str:
    """Say what somebody did, or was not allowed to do."""
    verb = verb_name(entry.verb)
    data = entry.data if isinstance(entry.data, dict) else {}
    if entry.verb == schedules.REFUSED:
        return f"could not start the planned run of schedule {isolated(data.get('schedule'))}"
    of = f" {isolated(data['schedule'])}" if data.get("schedule") else ""
    if entry.outcome == "denied":
        return f"denied: {verb}{of}"
    if entry.verb == ANSWER:
        return f"answered {isolated(data.get('request', ''))}"
    if entry.verb == retention.VERB:
        return f"deleted {sum(data.values())} past their retention"
    if data.get("from_step"):
        return f"restarted from {isolated(data['from_step'])}"
    kind = data.get("type")
    return f"sent event {isolated(kind)}" if kind else f"{DEEDS.get(entry.verb, verb)}{of}"


@register.filter
def verb_name(verb: str) -> str:
    """Write a verb of the trail, or a status, as people do."""
    return verb.replace("_", " ").replace("-", " ")


@register.filter
def kept_for(rules: Retention) -> str:
    """Say how long finished instances are kept."""
    spans = {status: getattr(rules, status) for status in ("complete", "errored", "terminated")}
    said = {
        status: format_duration(span) if span is not None else "forever" for status, span in spans.items()
    }
    if len(set(said.values())) == 1:
        only = said["complete"]
        return only if only == "forever" else f"{only} after the end"
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
