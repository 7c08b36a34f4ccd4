"""What the charts show, read once for all who see the same workflows."""

from __future__ import annotations

from collections.abc import Sequence

from engine.status.gathering import database_now
from engine.status.series import Series, series
from studio.charts.address import ChartsAddress, Range
from studio.frame.unchanged import Unchanged

KEPT = 40  # at most

_kept = Unchanged[Series](most=KEPT)


def numbers_of(asked: ChartsAddress, names: Sequence[str]) -> Series:
    """Return the numbers of the workflow that is asked for, or of all of these: two queries, or none."""
    wanted = [asked.workflow] if asked.workflow else sorted(names)
    return _kept.read((frozenset(wanted), asked.range), lambda: _read(asked.range, wanted))


def _read(span: Range, names: Sequence[str]) -> Series:
    now = database_now()
    return series(names, since=span.since(now), until=now, span=span.step, now=now)
