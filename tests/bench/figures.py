"""What was measured, and the table of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median


class Beside(StrEnum):
    """What of pgbench a figure is held against."""

    NOTHING = ""
    ONE_CLIENT = "× 1 client"
    EIGHT_CLIENTS = "× 8 clients"
    ONE_COMMIT = "commits"  # a duration in ms, in those of one client's commit


@dataclass(frozen=True)
class Limit:
    """Commits a second of one-row inserts."""

    one_client: float
    eight_clients: float

    def ratio(self, value: float, beside: Beside) -> float | None:
        """Return the figure in units of pgbench's; None where there is no sense in it."""
        match beside:
            case Beside.ONE_CLIENT:
                return value / self.one_client
            case Beside.EIGHT_CLIENTS:
                return value / self.eight_clients
            case Beside.ONE_COMMIT:
                return value * self.one_client / 1000
            case Beside.NOTHING:
                return None


@dataclass(frozen=True)
class Figure:
    workload: str
    what: str
    value: float
    unit: str
    beside: Beside = Beside.NOTHING
    ratio: float | None = None


Run = Sequence[Figure]
Row = tuple[str, str, str, str, str, str]


def table(runs: Sequence[Run]) -> list[str]:
    """Return the lines: the median of each figure and, of several runs, its lowest and highest value."""
    found: dict[tuple[str, str], list[Figure]] = {}
    for run in runs:
        for figure in run:
            found.setdefault((figure.workload, figure.what), []).append(figure)
    rows: list[Row] = [("", "what", "", "", "beside pgbench", "(min to max)" if len(runs) > 1 else "")]
    rows += [_row(figures) for figures in found.values()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [_line(row, widths) for row in rows]


def _row(figures: list[Figure]) -> Row:
    first = figures[0]
    values = [one.value for one in figures]
    ratios = [one.ratio for one in figures if one.ratio is not None]
    spread = f"({number(min(values))} to {number(max(values))})" if len(values) > 1 else ""
    beside = f"{number(median(ratios))} {first.beside}" if ratios else ""
    return first.workload, first.what, number(median(values)), first.unit, beside, spread


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.rjust(width) if place == 2 else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def number(value: float) -> str:
    """Write three digits that count, and no more."""
    if value == int(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value under which so many percent lie, between two values in proportion."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
