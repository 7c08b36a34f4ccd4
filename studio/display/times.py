"""How times are written before the browser shows them in its own time zone."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from django.utils import timezone

from engine.values.durations import format_duration

NEAR = timedelta(hours=24)  # the day of a minute is written from here on

# As the template tag `at` writes it.
_TIME = re.compile(
    r'(<time class="[a-z]+" data-kind="([a-z]+)" datetime="([^"]+)"[^>]* hx-morph-skip-children>)[^<]*(?=</time>)'
)


def whole(moment: datetime) -> str:
    """Return a time with its date and zone, as a title shows it until the browser adds its own zone."""
    return f"{moment.replace(tzinfo=None).isoformat(' ', 'seconds')} UTC"


def between(began: datetime, ended: datetime) -> str:
    """Return when something began and ended, to the millisecond."""
    first, last = (one.replace(tzinfo=None).isoformat(" ", "milliseconds") for one in (began, ended))
    return f"{first} to {last} UTC"


def first_text(moment: datetime, kind: str) -> str:
    """Return the text of a time until the browser replaces it."""
    if kind == "clock":
        return f"{moment:%H:%M:%S} UTC"
    if kind == "moment":
        return f"{moment:%Y-%m-%d %H:%M} UTC"
    now = timezone.now()
    if kind == "minute":
        return f"{moment:%H:%M}" if abs(moment - now) < NEAR else f"{moment:%Y-%m-%d %H:%M}"
    if kind == "left":
        return _left(int((moment - now).total_seconds()))
    if kind == "until":
        return f"in {format_duration(moment - now)}" if moment > now else "due"
    passed = max(now - moment, timedelta(0))
    return _ago(int(passed.total_seconds())) if kind == "ago" else format_duration(passed)


def with_times(html: str) -> str:
    """Return HTML that was rendered before, with the texts that its times have now."""
    return _TIME.sub(lambda one: f"{one[1]}{first_text(datetime.fromisoformat(one[3]), one[2])}", html)


def _left(seconds: int) -> str:
    """Return a rough time to go, which need not tick."""
    if seconds <= 0:
        return "due"
    if seconds < 3600:
        return f"in {seconds} s" if seconds < 60 else f"in {seconds // 60} min"
    return f"in {format_duration(timedelta(seconds=seconds))}"


def _ago(seconds: int) -> str:
    """Return a rough age, which need not tick."""
    if seconds < 60:
        return "just now" if seconds < 2 else f"{seconds} s ago"
    if seconds < 3600:
        return f"{seconds // 60} min ago"
    return f"{seconds // 3600} h ago" if seconds < 86_400 else f"{seconds // 86_400} d ago"
