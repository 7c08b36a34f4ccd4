"""What people type to ignore an error: for how long, for how many failures, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from django.http import QueryDict
from django.utils import timezone

from engine.steer.failures import MOST_FAILURES
from studio.instance.actions import LONGEST_REASON

SPANS = {
    "hour": ("for an hour", timedelta(hours=1)),
    "day": ("for a day", timedelta(days=1)),
    "week": ("for 7 days", timedelta(days=7)),
    "month": ("for 30 days", timedelta(days=30)),
    "": ("until it is reopened", None),
}
USUAL = "week"


@dataclass(frozen=True, slots=True)
class IgnoreForm:
    """A form as it was typed. `problem` says what is wrong with it."""

    span: str = USUAL
    count: str = ""
    reason: str = ""
    problem: str = ""

    @classmethod
    def of(cls, given: QueryDict) -> Self:
        span, count = given.get("span", ""), given.get("count", "").strip()[:12]
        reason = given.get("reason", "").replace("\0", "").strip()[:LONGEST_REASON]
        return cls(span if span in SPANS else USUAL, count, reason, _problem(span, count, reason))

    @property
    def spans(self) -> list[tuple[str, str, bool]]:
        return [(name, word, name == self.span) for name, (word, _) in SPANS.items()]

    @property
    def until(self) -> datetime | None:
        _, span = SPANS[self.span]
        return timezone.now() + span if span is not None else None

    @property
    def failures(self) -> int | None:
        return int(self.count) if self.count else None


def _problem(span: str, count: str, reason: str) -> str:
    if not reason:
        return "Not ignored. Enter a reason."
    if span not in SPANS:
        return "Not ignored. Choose for how long."
    is_number = count.isascii() and count.isdecimal()
    if count and not (is_number and 1 <= int(count) <= MOST_FAILURES):
        return f"Not ignored. The number of failures must be from 1 to {MOST_FAILURES:,}."
    return ""
