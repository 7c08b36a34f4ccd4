"""The numbers of the charts as CSV: a line for each step of time, durations in seconds."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import datetime

from engine.status.series import Figures, Quantiles, Series

COUNTS = ("started", "complete", "errored", "terminated", "retries")
COLUMNS = ("from", *COUNTS, "latency_p50_s", "latency_p95_s", "step_p50_s", "step_p95_s")


def as_csv(numbers: Series) -> str:
    """Write a header and lines. All cells are times and numbers, so spreadsheets find no formula in them."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(COLUMNS)
    writer.writerows(_cells(at, one) for at, one in zip(numbers.at, numbers.spans, strict=True))
    return written.getvalue()


def _cells(at: datetime, one: Figures) -> Iterator[str]:
    yield at.isoformat(timespec="minutes")
    yield from (str(getattr(one, name)) for name in COUNTS)
    yield from _seconds(one.latency)
    yield from _seconds(one.steps)


def _seconds(found: Quantiles | None) -> tuple[str, str]:
    """Return two cells, empty if there is no value: a mean over them must not count it as 0."""
    if found is None:
        return "", ""
    return f"{found.p50.total_seconds():g}", f"{found.p95.total_seconds():g}"
