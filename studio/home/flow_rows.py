"""The rows of the workflows. One that is as it was is not rendered again."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache

from django.utils.safestring import SafeString, mark_safe

from studio.display.rendering import render_to_string
from studio.frame.icons import icons_address
from studio.workflows.table import FlowRow

KEPT = 200


@dataclass(frozen=True, slots=True)
class _Shown:
    """A row, and all that its template writes of it: rows with equal parts look the same."""

    parts: tuple[Hashable, ...]
    row: FlowRow = field(compare=False)


def flow_row(row: FlowRow) -> SafeString:
    """Return the row of a workflow as HTML."""
    one, day = row.of, row.day
    has_worker = bool(one.servers.count or one.servers.is_starting)
    # A count that says "at least" equals one that does not.
    counts = tuple((status, str(n)) for status, n in row.open.items())
    parts = (
        (one.name, one.is_known, one.pause is None, has_worker, counts, icons_address()),
        (day.hours, day.started, day.complete, day.errored, day.is_unusual, row.p50, row.p95),
    )
    return mark_safe(_rendered(_Shown(parts, row)))  # noqa: S308  # a template's output


@lru_cache(maxsize=KEPT)
def _rendered(shown: _Shown) -> str:
    return render_to_string("studio/workflows/flow-row.html", {"row": shown.row})
