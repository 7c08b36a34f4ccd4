"""The four charts: what each draws, says in words, and lists in the table beside it. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from engine.status.series import Figures, Quantiles, Series
from engine.values.durations import format_duration
from studio.charts.address import Range
from studio.charts.wording import at_text, counted, quantiles_text

NAMES = ("throughput", "latency", "steps", "retries")
NONE = "–"
DAY = timedelta(days=1)

Value: TypeAlias = int | float | None


@dataclass(frozen=True, slots=True)
class Line:
    """A line or the bars of one kind. `look` names how it is drawn; `whole` is its value over the whole range."""

    look: str
    word: str
    values: tuple[Value, ...]
    whole: str

    @property
    def is_bar(self) -> bool:
        return self.look in ("complete", "errored", "terminated", "retries")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: when it began, as the page shows it before its script does, and the values as text."""

    iso: str
    text: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, ready to render. `nothing` says that it has no value at all."""

    name: str
    title: str
    about: str
    kind: str  # count or seconds
    began: datetime
    step: timedelta
    lines: tuple[Line, ...]
    words: str
    nothing: str
    rows: tuple[Row, ...]
    """The newest first."""

    @property
    def is_by_day(self) -> bool:
        return self.step >= DAY

    @property
    def plot(self) -> str:
        """What the script draws, as JSON."""
        values = [line.values for line in self.lines]
        step = round(self.step.total_seconds())
        found = {"kind": self.kind, "from": round(self.began.timestamp()), "step": step, "values": values}
        return json.dumps(found, separators=(",", ":"))


def charts_of(numbers: Series, span: Range) -> tuple[Chart, ...]:
    """Return the charts in their order on the page."""
    return (
        _instances(numbers, span),
        _latency(numbers, span),
        _steps(numbers, span),
        _retries(numbers, span),
    )


def _latency(numbers: Series, span: Range) -> Chart:
    named = ("latency", "Latency, due to started", "Nothing started")
    return _quantiles(numbers, span, named, lambda one: one.latency)


def _steps(numbers: Series, span: Range) -> Chart:
    named = ("steps", "Duration of steps", "No step completed")
    return _quantiles(numbers, span, named, lambda one: one.steps)


def _instances(numbers: Series, span: Range) -> Chart:
    kinds = {"started": "started", "complete": "completed", "errored": "errored", "terminated": "terminated"}
    total = numbers.total
    ended = total.complete + total.errored + total.terminated
    return _counts(
        numbers,
        span,
        ("throughput", "Instances"),
        kinds,
        nothing="" if ended or total.started else f"Nothing started in the {span.word}.",
    )


def _retries(numbers: Series, span: Range) -> Chart:
    return _counts(
        numbers,
        span,
        ("retries", "Retries of steps"),
        {"retries": "retries"},
        nothing="" if numbers.total.retries else f"No step was retried in the {span.word}.",
    )


def _counts(
    numbers: Series, span: Range, named: tuple[str, str], kinds: dict[str, str], *, nothing: str
) -> Chart:
    lines = tuple(
        Line(
            look,
            word,
            tuple(getattr(one, look) for one in numbers.spans),
            f"{getattr(numbers.total, look):,}",
        )
        for look, word in kinds.items()
    )
    name, title = named
    return Chart(
        name=name,
        title=title,
        about=f"per {span.each}",
        kind="count",
        began=numbers.at[0],
        step=numbers.span,
        lines=lines,
        words=nothing or counted(numbers, span, kinds),
        nothing=nothing,
        rows=tuple(_rows(numbers, lines, lambda value: f"{value:,}")),
    )


def _quantiles(
    numbers: Series, span: Range, named: tuple[str, str, str], of: Callable[[Figures], Quantiles | None]
) -> Chart:
    name, title, nobody = named
    found = [of(one) for one in numbers.spans]
    whole = of(numbers.total)
    lines = (
        _line("p50", [one.p50 if one else None for one in found], whole.p50 if whole else None),
        _line("p95", [one.p95 if one else None for one in found], whole.p95 if whole else None),
    )
    nothing = f"{nobody} in the {span.word}." if whole is None else ""
    return Chart(
        name=name,
        title=title,
        about=f"per {span.each}",
        kind="seconds",
        began=numbers.at[0],
        step=numbers.span,
        lines=lines,
        words=nothing or quantiles_text(title, whole, found, numbers.at, span),
        nothing=nothing,
        rows=tuple(_rows(numbers, lines, lambda value: format_duration(timedelta(seconds=value)))),
    )


def _line(name: str, found: Sequence[timedelta | None], whole: timedelta | None) -> Line:
    values = tuple(None if one is None else _seconds(one) for one in found)
    return Line(name, name, values, NONE if whole is None else format_duration(whole))


def _seconds(duration: timedelta) -> float:
    """Return it to three digits or to the second, rounded down: as much as its text shows, in a shorter page."""
    micros = duration // timedelta(microseconds=1)
    least = min(10 ** max(len(str(micros)) - 3, 0), 1_000_000)
    return micros // least * least / 1_000_000


def _rows(numbers: Series, lines: Sequence[Line], text: Callable[[float], str]) -> Iterator[Row]:
    """Yield a row for each span, the newest first."""
    for at in reversed(range(len(numbers.at))):
        moment = numbers.at[at]
        values = [line.values[at] for line in lines]
        cells = tuple(NONE if value is None else text(value) for value in values)
        yield Row(moment.isoformat(timespec="minutes"), at_text(moment, numbers.span), cells)
