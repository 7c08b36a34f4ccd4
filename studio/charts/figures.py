"""The figures above the charts, and the table of workflows below them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from engine.status.series import Figures, Quantiles
from engine.values.durations import format_duration
from studio.charts.address import ChartsAddress, Range

NONE = "–"
TIMES = ((1, "a minute"), (60, "an hour"), (1440, "a day"))


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with what it counts, and a note. `look` is the status whose color it has, if any."""

    title: str
    value: str
    note: str
    look: str = ""


@dataclass(frozen=True, slots=True)
class Flow:
    """A row of the table of workflows."""

    name: str
    address: str
    figures: Figures
    ended: int
    share: str
    """The errored ones among those that ended."""
    latency: str
    steps: str


def figures_of(total: Figures, span: Range) -> list[Figure]:
    """Return the figures of the whole range."""
    minutes = span.whole / timedelta(minutes=1)
    return [
        Figure("Started", f"{total.started:,}", _pace(total.started, minutes)),
        Figure("Completed", f"{total.complete:,}", _pace(total.complete, minutes)),
        Figure(
            "Errored",
            f"{total.errored:,}",
            _of_ended(total),
            "errored" if total.errored else "",
        ),
        Figure("Retries of steps", f"{total.retries:,}", _pace(total.retries, minutes)),
        Figure("Latency, p95", _p95(total.latency), _p50(total.latency, "nothing started")),
        Figure("Duration of steps, p95", _p95(total.steps), _p50(total.steps, "no step completed")),
    ]


def flows_of(by_workflow: Mapping[str, Figures], asked: ChartsAddress) -> Sequence[Flow]:
    """Return the workflows in which something happened, by name."""
    return [*_flows(by_workflow, asked)]


def _flows(by_workflow: Mapping[str, Figures], asked: ChartsAddress) -> Iterator[Flow]:
    for name, one in sorted(by_workflow.items()):
        if one == Figures():
            continue
        yield Flow(
            name=name,
            address=asked.of_workflow(name),
            figures=one,
            ended=_ended(one),
            share=share(one) or NONE,
            latency=_p95(one.latency),
            steps=_p95(one.steps),
        )


def share(one: Figures) -> str:
    """Return how many of those that ended errored; empty if nothing ended. Never 0 % or 100 % if it is not exactly."""
    if not _ended(one):
        return ""
    found = 100 * one.errored / _ended(one)
    if 0 < found < 0.1:
        return "<0.1 %"
    if 99.9 < found < 100:
        return ">99.9 %"
    return f"{found:.0f} %" if found in (0, 100) else f"{found:.1f} %"


def _ended(one: Figures) -> int:
    return one.complete + one.errored + one.terminated


def _of_ended(one: Figures) -> str:
    found = share(one)
    return f"{found} of those that ended" if found else "nothing ended"


def _pace(count: int, minutes: float) -> str:
    """Return the rate, by the shortest of some times in which there is about one."""
    if not count:
        return "none"
    rates = [(count * each / minutes, word) for each, word in TIMES]
    found, word = next((one for one in rates if one[0] >= 0.95), rates[-1])
    if found < 0.1:
        return f"<0.1 {word}"
    return f"{found:.1f} {word}" if found < 10 else f"{found:,.0f} {word}"


def _p95(found: Quantiles | None) -> str:
    return NONE if found is None else format_duration(found.p95)


def _p50(found: Quantiles | None, otherwise: str) -> str:
    return otherwise if found is None else f"p50 {format_duration(found.p50)}"
