"""What a chart shows, in a sentence: for those who cannot see it, and for those who want only that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from engine.status.series import Quantiles, Series
from engine.values.durations import format_duration
from studio.charts.address import Range

DAY = timedelta(days=1)


def at_text(moment: datetime, step: timedelta) -> str:
    """Return when a step began, in UTC."""
    if step >= DAY:
        return f"{moment:%Y-%m-%d}"
    return f"{moment:%H:%M}" if step < timedelta(hours=1) else f"{moment:%Y-%m-%d %H:%M}"


def counted(numbers: Series, span: Range, kinds: Mapping[str, str]) -> str:
    """Return how many there were of each kind, and when there were most of the first.

    "In the last hour: started 1,204, completed 1,198, errored 3, terminated 0. Most started at 14:05 UTC: 41."
    """
    parts = ", ".join(f"{word} {getattr(numbers.total, name):,}" for name, word in kinds.items())
    text = f"In the {span.word}: {parts}."
    most, word = next(
        ((name, word) for name, word in kinds.items() if getattr(numbers.total, name)), ("", "")
    )
    if not most:
        return text
    at = max(range(len(numbers.spans)), key=lambda place: getattr(numbers.spans[place], most))
    count = getattr(numbers.spans[at], most)
    return f"{text} Most {word} {_when(numbers.at[at], numbers.span)}: {count:,}."


def quantiles_text(
    title: str,
    whole: Quantiles | None,
    found: Sequence[Quantiles | None],
    at: Sequence[datetime],
    span: Range,
) -> str:
    """Return the quantiles of the whole range, and when the high one was highest."""
    if whole is None:
        return ""
    highest, moment = max((one.p95, at[place]) for place, one in enumerate(found) if one is not None)
    return (
        f"{title}, in the {span.word}: half within {format_duration(whole.p50)}, 95 % within "
        f"{format_duration(whole.p95)}. The highest p95 is {format_duration(highest)}, {_when(moment, span.step)}."
    )


def _when(moment: datetime, step: timedelta) -> str:
    text = at_text(moment, step)
    return f"on {text}" if step >= DAY else f"at {text} UTC"
