"""The rows of lists of instances. None reads a whole payload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from engine.models import Instance
from engine.status.facts import StatusFacts
from engine.status.gathering import facts_by_key, without_values
from engine.status.sentences.sentence import Sentence
from engine.status.sentences.status_line import short_line
from engine.values.shown import display_status
from studio.instances.columns import Cell, Path, cells_of

PAGE = 50


def rows_by_key(keys: Sequence[int]) -> list[Instance]:
    """Read the rows that a page shows, in its order."""
    found: dict[int, Any] = {row.key: row for row in without_values().filter(key__in=keys)}
    return [found[key] for key in keys if key in found]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a list, with the cells of its added columns."""

    instance: Instance
    status: str
    now: Sentence
    began_at: datetime
    cells: tuple[Cell, ...] = ()
    is_list: bool = False  # of the list itself, which has a column for the end


def rows_of(
    instances: Sequence[Instance], columns: Sequence[Path] = (), *, is_list: bool = False
) -> list[Row]:
    """Return the rows of a page, with seven queries in all, and one for all added columns."""
    found = facts_by_key(instances)
    cells = cells_of([instance.key for instance in instances], columns)
    empty = (Cell(),) * len(columns)
    rows = (_row(one, found[one.key]) for one in instances)
    return [replace(row, cells=cells.get(row.instance.key, empty), is_list=is_list) for row in rows]


def _row(instance: Instance, facts: StatusFacts) -> Row:
    asks = any(step.is_asking for step in facts.steps)
    status = display_status(instance.status, instance.waiting_for, asks=asks)
    return Row(instance, status, short_line(facts), facts.began_at or instance.created_at)
