"""What lists are ordered by, as expressions."""

from __future__ import annotations

from typing import Any

from django.db.models import BigIntegerField
from django.db.models.expressions import RawSQL

from engine.status.searching.conditions import BEGAN
from engine.values.query.order import SortBy

_MICROSECONDS = "(extract(epoch FROM {}) * 1000000)::bigint"


def value_of(by: SortBy, now_us: int) -> Any:
    """Return the microseconds that a list is ordered by; open instances have lasted until `now_us`."""
    if by is SortBy.FINISHED:
        return RawSQL(_MICROSECONDS.format("engine_instance.finished_at"), [], output_field=BigIntegerField())
    ended = "coalesce(engine_instance.finished_at, to_timestamp(%s::bigint / 1000000.0))"
    text = _MICROSECONDS.format(f"{ended} - ({BEGAN})")
    return RawSQL(text, [now_us], output_field=BigIntegerField())
