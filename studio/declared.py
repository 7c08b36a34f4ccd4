"""What the form for an event shows of declared types: the payload's fields, and an example to start from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.declare.registry import declared_events
from engine.values.errors import RepriseError
from studio import payloads, schema

MOST = 50


@dataclass(frozen=True, slots=True)
class Declared:
    """A declared event type."""

    name: str
    fields: tuple[schema.Field, ...]
    example: str
    is_required: bool


def declared(names: Sequence[str]) -> list[Declared]:
    """Describe those of the types that the code declares; where it waits for none, all that it declares."""
    wanted = list(dict.fromkeys(names)) or sorted(declared_events)
    return [_declared(name) for name in wanted if name in declared_events][:MOST]


def _declared(name: str) -> Declared:
    found = declared_events[name].schema()
    return Declared(
        name=name,
        fields=tuple(schema.fields(found)),
        example=payloads.pretty(schema.example(found)) if found else "",
        is_required=not _takes_nothing(name),
    )


def _takes_nothing(name: str) -> bool:
    try:
        declared_events[name].validate(None)
    except RepriseError:
        return False
    return True
