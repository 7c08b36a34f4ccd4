"""A sentence in parts, for a page whose times tick, and as plain text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.status.sentences.bidi import isolated
from engine.values.durations import format_duration

LONGEST_ERROR = 300  # characters


@dataclass(frozen=True, slots=True)
class Moment:
    """A time that ticks in the browser: `until`, `left`, `since`, `ago`, `moment` or `minute`."""

    kind: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Code:
    """A name from a user's program."""

    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """How long something took, with when it began and ended."""

    began_at: datetime
    ended_at: datetime

    @property
    def duration(self) -> timedelta:
        return max(self.ended_at - self.began_at, timedelta(0))


Part = str | Moment | Code | Span
Sentence = tuple[Part, ...]


def as_text(sentence: Sentence, now: datetime) -> str:
    """Return the sentence as plain text."""
    return "".join(_word(part, now) for part in sentence)


def _word(part: Part, now: datetime) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Code):
        return quoted(part.text)
    if isinstance(part, Span):
        return format_duration(part.duration)
    if part.kind in ("until", "left"):
        return f"in {format_duration(part.at - now)}" if part.at > now else "due"
    if part.kind == "moment":
        return f"{part.at:%Y-%m-%d %H:%M:%S} UTC"
    if part.kind == "minute":
        return f"{part.at:%Y-%m-%d %H:%M} UTC"
    passed = format_duration(max(now - part.at, timedelta(0)))
    return f"{passed} ago" if part.kind == "ago" else passed


def capital(sentence: Sentence) -> Sentence:
    first, *rest = sentence
    return (first[:1].upper() + first[1:], *rest) if isinstance(first, str) else sentence


def quoted(text: str) -> str:
    """Quote a user's text, isolated so that its direction affects only itself."""
    return f"“{isolated(text)}”"


def many(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}"


def first_line(text: str, length: int) -> str:
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= length else line[: length - 1] + "…"


def error_text(error: dict[str, object] | None) -> str:
    kind, message = (error or {}).get("type") or "an unknown error", (error or {}).get("message")
    # The message of step.fail() is complete.
    text = f"{kind}: {message}" if message and kind != "WorkflowFailed" else f"{message or kind}"
    return isolated(text if len(text) <= LONGEST_ERROR else text[: LONGEST_ERROR - 1] + "…")
