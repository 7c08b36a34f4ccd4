"""Which generation of an instance a page shows, by its address."""

from __future__ import annotations

from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast, Left, Length
from django.http import Http404

from engine.models import Generation, Instance
from engine.status.generations import Generations, as_it_was
from studio.filters import cursor
from studio.payloads import FULL_UP_TO


def wanted(instance: Instance, text: str) -> int | None:
    """Read which one an address asks for: None for the newest. What there is not is a 404."""
    number = cursor(text)
    if number is None or number == instance.generation:
        return None
    if not Generation.objects.filter(instance_id=instance.key, number=min(number, 2**31 - 1)).exists():
        raise Http404
    return number


def as_of(instance: Any, number: int) -> Any:
    """Return an instance as an earlier generation left it, with the beginning of its output as text.

    Raises Generation.DoesNotExist.
    """
    rows = Generation.objects.defer("output").annotate(
        output_text=Left(Cast("output", TextField()), FULL_UP_TO + 1),
        output_size=Length(Cast("output", TextField())),
    )
    kept: Any = rows.get(instance_id=instance.key, number=number)
    past = as_it_was(instance, kept)
    past.output_text, past.output_size = kept.output_text, kept.output_size
    return past


def place_of(those: Generations) -> str:
    """Begin the queries of links that stay in an earlier generation."""
    return f"generation={those.shown}&" if those.is_past else ""
