"""The rows of lists of instances. None reads a whole payload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse

from engine.models import Instance
from engine.status.facts import StatusFacts
from engine.status.gathering import facts_by_key, without_values
from engine.status.sentences.sentence import Sentence
from engine.status.sentences.status_line import short_line
from engine.values.shown import display_status
from engine.values.states import InstanceStatus
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
    address: str
    of_workflow: str  # the address of its workflow
    status: str
    word: str  # what to call the status; empty if that is its name
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
    places = {name: _places(name) for name in {instance.workflow for instance in instances}}
    return [
        _row(one, found[one.key], places[one.workflow], cells.get(one.key, empty), is_list=is_list)
        for one in instances
    ]


def _row(
    instance: Instance,
    facts: StatusFacts,
    places: tuple[str, str],
    cells: tuple[Cell, ...],
    *,
    is_list: bool,
) -> Row:
    asks = any(step.is_asking for step in facts.steps)
    of_workflow, of_instances = places
    return Row(
        instance,
        address=f"{of_instances}{instance.id}/",
        of_workflow=of_workflow,
        status=display_status(instance.status, instance.waiting_for, asks=asks),
        word="pausing" if instance.status == InstanceStatus.WAITING_FOR_PAUSE else "",
        now=short_line(facts),
        began_at=facts.began_at or instance.created_at,
        cells=cells,
        is_list=is_list,
    )


def _places(workflow: str) -> tuple[str, str]:
    """Return the addresses of a workflow and of what is before the IDs of its instances.

    Django takes longer for one address than for the rest of a row, and nothing in an ID has to be quoted.
    """
    any_id = "0"
    of_one = reverse("studio:instance", args=[workflow, any_id])
    return reverse("studio:workflow", args=[workflow]), of_one.removesuffix(f"{any_id}/")
