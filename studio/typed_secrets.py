"""What was typed as a secret is not sent back to the page: in its place stands the mask, to be typed over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from engine.registry import Workflow, declared_events
from engine.secret_places import secret_places
from engine.serialization.envelope import MASK
from engine.serialization.secret_schema import holds_secrets
from studio import jsonplace, schema
from studio.forms import Checked, Problem, Typed, check_event, check_start, read_text
from studio.jsonplace import Place


def without_secrets(workflow: Workflow[Any, Any], typed: Typed, checked: Checked) -> tuple[Typed, Checked]:
    """Return the start form that is drawn again: its secrets are to be entered anew."""
    text = hidden(typed.text, workflow.params_schema())
    if text == typed.text:
        return typed, checked
    masked = replace(typed, text=text)
    return masked, Checked(None, _together(check_start(workflow, masked), checked))


def event_without_secrets(kind: str, text: str, checked: Checked) -> tuple[str, tuple[Problem, ...]]:
    """Return the payload of an event, and what is wrong with it, for the form that is drawn again."""
    declared = declared_events.get(kind)
    shown = hidden(text, declared.schema()) if declared is not None else text
    return shown, checked.problems if shown == text else _together(check_event(kind, shown), checked)


def _together(masked: Checked, checked: Checked) -> tuple[Problem, ...]:
    """Give the problems of the masked text, at their places in it, and what else was wrong with the typed one."""
    said = {(problem.field, problem.path, problem.message) for problem in masked.problems}
    others = [one for one in checked.problems if (one.field, one.path, one.message) not in said]
    return (*masked.problems, *(Problem(one.field, one.message, one.path) for one in others))


def hidden(text: str, root: Mapping[str, Any] | None) -> str:
    """Return a typed JSON text with a mask in the place of each secret that its schema knows."""
    if root is None or not holds_secrets(root):
        return text
    for place in sorted(_places(text, root), key=lambda place: -place.start):
        text = f'{text[: place.start]}"{MASK}"{text[place.end :]}'
    return text


def _places(text: str, root: Mapping[str, Any]) -> list[Place]:
    read = read_text(text, "params", is_optional=True)
    if read.is_good:
        found = secret_places(read.value, root)
        return [jsonplace.find(text, [str(part) for part in path]) for path in found] if text.strip() else []
    return list(_by_name(text, root))


def _by_name(text: str, root: Mapping[str, Any]) -> Iterator[Place]:
    """Find secrets in a text that is not JSON: what follows their names. One without a name may be anywhere."""
    if schema.is_secret_inside(root, root):
        yield Place(0, len(text))
        return
    reached = 0
    for name in re.finditer(
        "|".join(rf'"{re.escape(one)}"\s*:\s*' for one in sorted(_names(root, root))), text
    ):
        if name.start() >= reached:
            reached = jsonplace.end_of(text, name.end())
            yield Place(name.end(), reached)


def _names(root: Mapping[str, Any], node: Any) -> set[str]:
    """Give the names of all fields that hold a secret themselves, or in lists and the like."""
    if isinstance(node, list):
        return {name for item in node for name in _names(root, item)}
    if not isinstance(node, Mapping):
        return set()
    fields = node.get("properties") or {}
    own = {name for name, field in fields.items() if schema.is_secret_inside(root, field)}
    return own.union(*(_names(root, part) for part in node.values()))
