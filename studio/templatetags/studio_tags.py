"""Template tags for times, statuses and values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache, lru_cache
from typing import Any

from django import template
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.template import RequestContext
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString

from engine.status.facts import Servers
from engine.status.sentences import bidi, status_line
from engine.status.sentences.sentence import Code, Moment, Part, Sentence, Span
from engine.steer.requests import is_answer
from engine.values.durations import format_duration
from engine.values.retention_rules import Retention
from studio.access.login import is_own_login
from studio.access.permissions import Verb, allowed
from studio.accounts.preferences import Preferences
from studio.approvals import queries as inbox
from studio.audit.words import action_text, done_name, token_scope, verb_name
from studio.display import payloads
from studio.display.at_least import AtLeast
from studio.display.invisible import visible
from studio.display.note_text import note_text
from studio.display.status import PARTS, Look
from studio.display.times import between, first_text, whole
from studio.errors.visibility import count_open
from studio.frame.headers import csrf_header
from studio.frame.icons import icons_address
from studio.frame.joined import joined_address
from studio.frame.notes import notes_of
from studio.instances.address import list_address
from studio.saved_views.tabs import rail_of

register = template.Library()
register.filter("action_text", action_text)
register.filter("done_name", done_name)
register.filter("note_text", note_text)
register.filter("token_scope", token_scope)
register.filter("verb_name", verb_name)
register.filter("visible", visible)

_UNKNOWN = Look("queued", "circle-dashed", "idle")


@register.simple_tag(takes_context=True)
def frame(context: RequestContext) -> str:
    """Set what the frame of every page shows. A site needs no context processors for it."""
    request: HttpRequest = context.request
    user = getattr(request, "user", AnonymousUser())
    context["request"], context["user"] = request, user
    context["notes"] = notes_of(request)
    context["csrf_header"] = csrf_header()
    context["preferred"] = Preferences.of(request)
    context["server_time"] = timezone.now()
    context["has_password_page"] = is_own_login
    context["may_administer"] = lambda: allowed(user, Verb.ADMINISTER, None)
    context["rail_views"] = cache(lambda: rail_of(user, _view_open(request)))
    if "approvals_mine" not in context:  # the inbox has counted it
        context["approvals_mine"] = lambda: inbox.count_mine(user)  # queried only when it is used
    context["errors_open"] = lambda: count_open(user)
    return ""


def _view_open(request: HttpRequest) -> str:
    match = request.resolver_match
    return request.GET.get("view", "") if match is not None and match.url_name == "instances" else ""


register.simple_tag(joined_address, name="joined")


@register.filter
def pairs(value: Mapping[str, object] | None) -> list[tuple[str, object]]:
    """Return the items of what users have made: `.items` in a template would be its key of that name."""
    return [*(value or {}).items()]


@register.simple_tag
def icon(name: str) -> SafeString:
    """Render an icon. It is decorative: a word next to it has the meaning."""
    return _icon(icons_address(), name)


@lru_cache(maxsize=256)
def _icon(address: str, name: str) -> SafeString:
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>', address, name)


@register.simple_tag
def chip(status: str, word: str = "", size: str = "") -> SafeString:
    """Render a status with icon, word, color and outline."""
    return _chip(icons_address(), status, word or status.replace("_", " "), size)


@lru_cache(maxsize=256)
def _chip(address: str, status: str, word: str, size: str) -> SafeString:
    look = PARTS.get(status, _UNKNOWN)
    drawn = _icon(address, look.icon)
    return format_html('<span class="chip s-{} {} {}">{}{}</span>', status, look.outline, size, drawn, word)


@register.simple_tag
def status_icon(status: str) -> SafeString:
    return icon(PARTS.get(status, _UNKNOWN).icon)


@register.simple_tag
def favicon(status: str) -> str:
    return static(f"studio/icons/{status}.svg" if status else "studio/icons/reprise.svg")


@register.simple_tag
def at(moment: datetime | None, kind: str = "moment") -> SafeString:
    """Render a time that the browser keeps up to date.

    `moment`, `minute` and `clock` are absolute; `ago`, `since`, `left` and `until` tick.
    """
    if moment is None:
        return SafeString("")
    look = "at" if kind in ("moment", "minute", "clock") else "tick"
    # The script owns the text, so updates skip it (hx-morph-skip-children) and change the attributes only. Nothing in
    # it needs escaping, which would take longer than all the rest: times, and a kind that a template or sentence names.
    return SafeString(
        f'<time class="{look}" data-kind="{kind}" datetime="{moment.isoformat()}" title="{whole(moment)}"'
        f" hx-morph-skip-children>{first_text(moment, kind)}</time>"
    )


@register.simple_tag
def lasted(began: datetime | None, ended: datetime | None) -> SafeString:
    """Render how long something took. The title says when it began and ended."""
    if began is None or ended is None:
        return SafeString("")
    return SafeString(
        f'<time class="lasted" data-from="{began.isoformat(timespec="milliseconds")}"'
        f' data-to="{ended.isoformat(timespec="milliseconds")}"'
        f' datetime="PT{max((ended - began).total_seconds(), 0):.3f}S"'
        f' title="{between(began, ended)}">{took(ended - began)}</time>'
    )


@register.simple_tag
def instances_address(workflow: str = "", status: str = "") -> str:
    """Return the address of the list of a workflow's instances, or of those in a status."""
    return list_address(workflow=workflow, status=status)


@register.filter
def took(duration: timedelta | None) -> str:
    return "" if duration is None else format_duration(max(duration, timedelta(0)))


@register.filter
def signed(difference: timedelta) -> str:
    """Render how much longer or shorter something took."""
    sign = "+" if difference > timedelta(0) else "−" if difference < timedelta(0) else ""
    return f"{sign}{format_duration(abs(difference))}"


@register.simple_tag
def sentence(parts: Sentence) -> SafeString:
    """Render a status line: text escaped, names as code, times ticking."""
    return SafeString("".join(conditional_escape(_part(part)) for part in parts))


def _part(part: Part) -> str | SafeString:
    if isinstance(part, Moment):
        return at(part.at, part.kind)
    if isinstance(part, Span):
        return lasted(part.began_at, part.ended_at)
    return format_html("<code>{}</code>", bidi.isolated(part.text)) if isinstance(part, Code) else part


@register.filter
def count(n: int | None) -> str:
    """Return a count as text; one that reached its cap ends in a plus sign."""
    return str(n) if isinstance(n, AtLeast) else f"{n or 0:,}"


@register.filter
def busy(servers: Servers) -> str:
    """Return how many slots of the workers are in use."""
    return status_line.busy(servers)


@register.filter
def get(mapping: dict[str, Any], key: str) -> Any:
    return mapping.get(key, 0)


@register.simple_tag
def tree(payload: payloads.Payload) -> SafeString:
    """Render a JSON value that folds without JavaScript."""
    return payloads.draw(payload.tree, is_root=True) if payload.tree is not None else SafeString("")


@register.filter
def slug_with(seq: int, number: int) -> str:
    """Return the id of an element of an attempt."""
    return f"{seq}-{number}"


@register.simple_tag
def sprite_of(name: str) -> str:
    return f"{icons_address()}#{name}"


@register.filter
def isolated(text: object) -> str:
    """Isolate the text direction of foreign text."""
    return bidi.isolated(str(text))


@register.filter
def kept_for(rules: Retention) -> str:
    """Return how long finished instances are kept."""
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
    """Split a docstring into paragraphs, ignoring its line breaks."""
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


_QUOTED = re.compile(r"(``?)([^`]+)\1")


@register.filter
def with_code(text: str) -> SafeString:
    """Render a line of a docstring, with text in backticks as code."""
    parts = _QUOTED.split(text)
    words = format_html_join(
        "", "{}<code>{}</code>", ((parts[at], parts[at + 2]) for at in range(0, len(parts) - 1, 3))
    )
    return format_html("{}{}", words, parts[-1])


@register.filter
def event_name(type: str) -> str:
    """Return the name of an event to show instead of the engine's own types."""
    return f"answer to step {type.rpartition(':')[2]}" if is_answer(type) else type
