"""The form that sends an event: its declared types, and validation without writing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.declare.registry import declared_events
from engine.values.errors import InvalidNameError, InvalidParamsError, RepriseError
from engine.values.identity import check_event_type
from studio.display import payloads
from studio.forms import schema
from studio.forms.checked import MOST_PROBLEMS, Checked, Problem
from studio.forms.json_text import placed, read_text
from studio.forms.typed_secrets import hidden, together

MOST = 50


@dataclass(frozen=True, slots=True)
class Declared:
    """A declared event type."""

    name: str
    fields: tuple[schema.Field, ...]
    example: str
    is_required: bool


def declared(names: Sequence[str]) -> list[Declared]:
    """Describe the declared types among these; if no types are given, all declared types."""
    wanted = list(dict.fromkeys(names)) or sorted(declared_events)
    return [_declared(name) for name in wanted if name in declared_events][:MOST]


def check_event(type: str, text: str) -> Checked:
    """Validate the type and the payload of an event. A declared event has a payload type."""
    problems: list[Problem] = []
    try:
        check_event_type(type)
    except InvalidNameError as error:
        problems.append(Problem("type", str(error)))
    read = read_text(text, "payload", is_optional=True)
    problems += read.problems
    declared = declared_events.get(type)
    if read.is_good and declared is not None:
        try:
            declared.validate(read.value)
        except InvalidParamsError as error:
            problems += placed(text, "payload", error.errors)
    return Checked(read.value, tuple(problems[:MOST_PROBLEMS]))


def event_without_secrets(kind: str, text: str, checked: Checked) -> tuple[str, tuple[Problem, ...]]:
    """Return the payload of a rejected event without secrets, and its problems."""
    declared = declared_events.get(kind)
    shown = hidden(text, declared.schema()) if declared is not None else text
    return shown, checked.problems if shown == text else together(check_event(kind, shown), checked)


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
