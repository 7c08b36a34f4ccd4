"""An instance in one of its generations, read without large values, or with only prefixes of them."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast, Left, Length

from engine.models import Generation, Instance
from engine.status.generations import SHOWN, Generations, generations_of
from engine.values.errors import GenerationNotFoundError as GenerationNotFoundError

# The columns of a generation's row. All other columns of an instance are those of the current generation.
KEPT = (
    "status",
    "output",
    "error",
    "pause_reason",
    "rollback",
    "unreached",
    "code",
    "started_at",
    "finished_at",
)
_PREFIX = ("output_text", "output_size")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An instance as an earlier generation left it, or as it is now in the newest one. Read-only."""

    instance: Instance
    generations: Generations


def snapshot(
    newest: Instance,
    number: int | None = None,
    *,
    output_up_to: int | None = None,
    limit: int = SHOWN,
    with_errors: bool = False,
) -> Snapshot:
    """Return the instance in a generation, by default the newest, with one query for an earlier one.

    `output_up_to` limits the characters of an earlier output, as in `with_prefixes`. `limit` and `with_errors` are
    those of `generations_of`. Raises GenerationNotFoundError.
    """
    if number is not None and not 1 <= number <= newest.generation:
        raise GenerationNotFoundError(newest.workflow, newest.id, number, newest.generation)
    those = generations_of(newest, number, limit=limit, with_errors=with_errors)
    if not those.is_past:
        return Snapshot(newest, those)
    rows: Any = Generation.objects.filter(instance_id=newest.key, number=those.shown)
    kept = (rows if output_up_to is None else with_prefixes(rows, "output", length=output_up_to)).first()
    if kept is None:
        raise GenerationNotFoundError(newest.workflow, newest.id, those.shown, newest.generation)
    return Snapshot(_with_params(_as_it_was(newest, kept), output_up_to), those)


def _with_params(past: Any, up_to: int | None) -> Any:
    """Set the params that this generation ran with, if a later restart changed them."""
    rows: Any = Generation.objects.filter(instance_id=past.key, number__gte=past.generation)
    rows = rows.filter(params__isnull=False).order_by("number").only("number", "params")
    kept = (rows if up_to is None else with_prefixes(rows, "params", length=up_to)).first()
    if kept is None:
        return past
    for name in ("params", "params_text", "params_size"):
        if name not in kept.get_deferred_fields() and hasattr(kept, name):
            setattr(past, name, getattr(kept, name))
    past.params_from = kept.number  # the row that has them
    return past


def _as_it_was(newest: Instance, kept: Any) -> Instance:
    past = copy.copy(newest)
    past.generation = kept.number
    deferred = kept.get_deferred_fields()
    for name in (*KEPT, *_PREFIX):
        if name not in deferred and hasattr(kept, name):
            setattr(past, name, getattr(kept, name))
    past.waiting_for = past.ends_as = ""
    past.wake_at = past.paused_at = past.deadline_at = past.owner = past.starts_at = None
    past.quarantined = past.notify_pending = False
    return past


def with_prefixes(rows: Any, *columns: str, length: int) -> Any:
    """Return the query with `<column>_text` and `<column>_size` instead of these JSON columns.

    The text has the first `length` characters, and one more if the value is longer; the size counts all characters.
    """
    found = rows.defer(*columns)
    for column in columns:
        text = Cast(column, TextField())
        found = found.annotate(**{f"{column}_text": Left(text, length + 1), f"{column}_size": Length(text)})
    return found
