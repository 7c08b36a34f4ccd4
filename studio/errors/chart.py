"""The geometry of the chart of an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from studio.display.bars import LEAST, bar_height

CHART = 150  # height of its bars


@dataclass(frozen=True, slots=True)
class ChartBar:
    """A bar of a chart; `x`, `width` and `middle` are per cent of its width."""

    x: str
    width: str
    middle: str
    y: int
    height: int
    count: int
    label: str
    title: str
    is_now: bool


def chart_bars(trend: Sequence[tuple[datetime, int]], span: str) -> list[ChartBar]:
    """Return the bars of the chart of a span of time, the oldest first."""
    if not trend:
        return []
    highest = max(LEAST, *(count for _, count in trend))
    share = 100 / len(trend)
    return [
        _chart_bar(at, share, count, highest, *_texts(moment, span, len(trend) - 1 - at))
        for at, (moment, count) in enumerate(trend)
    ]


def _chart_bar(at: int, share: float, count: int, highest: int, label: str, when: str) -> ChartBar:
    height = bar_height(count, highest, CHART)
    left, width = at * share + share * 0.17, share * 0.66
    return ChartBar(
        x=f"{left:.3f}",
        width=f"{width:.3f}",
        middle=f"{(at + 0.5) * share:.3f}",
        y=CHART - height,
        height=height,
        count=count,
        label=label,
        title=f"{when}: {count:,}",
        is_now=abs((at + 1) * share - 100) < 0.01,
    )


def _texts(moment: datetime, span: str, left: int) -> tuple[str, str]:
    """Return the label below a bar, empty if it has none, and when it was, as its title. `left` bars follow."""
    there = moment.astimezone(UTC)
    if span == "fortnight":
        return "today" if not left else str(there.day), f"{there:%Y-%m-%d} (UTC)"
    if span == "day":
        label = "now" if not left else f"-{left} h" if left % 6 == 0 else ""
        return label, f"{there:%Y-%m-%d %H}:00 UTC"
    minutes = left * 3
    label = "now" if not left else f"-{minutes} min" if minutes % 15 == 0 else ""
    return label, f"{there:%H:%M} UTC, 3 minutes"
