"""Do what was pressed in a form, and before it what was chosen or typed without its own button."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from studio.forms import reading
from studio.forms.building import build
from studio.forms.changes import VERBS, UnknownChangeError, after, change
from studio.forms.controls import Control, within
from studio.forms.document import Path, pointer
from studio.forms.reading import Reading

_Value = TypeVar("_Value")


@dataclass(slots=True)
class Pressed:
    """The document and where things are in it."""

    document: Any
    picks: dict[Path, int] = field(default_factory=dict)  # the alternatives that are shown
    secrets: dict[Path, str] = field(
        default_factory=dict
    )  # the pointer that each secret had on the page before
    focus: Path | None = None
    has_new: bool = (
        False  # something was added or changed without its button: somebody has to look at it first
    )

    @property
    def picked(self) -> dict[str, int]:
        return {pointer(path): number for path, number in self.picks.items()}


def where(form: Control, read: Reading) -> Pressed:
    """Return what was read, without pressing anything."""
    unions = {read.now(one.path): one.picked for one in within(form) if one.kind == "union"}
    secrets = {read.now(one.path): one.name for one in within(form) if one.kind == "secret"}
    return Pressed(read.document, unions, secrets)


def press(
    root: Mapping[str, Any], form: Control, read: Reading, given: Mapping[str, str], op: str
) -> Pressed:
    """Return the document after all that was pressed. `form` has the controls that the page showed."""
    made = where(form, read)
    verb, _, name = op.partition(":")
    changed = list(reading.repicked(form, given))
    for union, chosen in changed:
        _pick(root, made, replace(union, path=read.now(union.path)), chosen)
    for control, new in _new_names(form, given, [union for union, _ in changed]):
        here = replace(control, path=read.now(control.path))
        made.document, made.focus = change(root, here, made.document, "enter", here.name, new)
        made.has_new = made.has_new or op != f"enter:{control.name}"
    pressed = next((one for one in within(form) if one.name == name), None)
    is_done = verb == "pick" or (verb == "enter" and given.get(reading.NEW + name, "").strip())
    if pressed is not None and verb in VERBS and not is_done:
        _act(root, made, verb, pointer(read.now(pressed.path)))
    made.has_new = made.has_new or any(op != f"pick:{union.name}" for union, _ in changed)
    return made


def _pick(root: Mapping[str, Any], made: Pressed, union: Control, chosen: str) -> None:
    made.document, made.focus = change(root, union, made.document, "pick", union.name, chosen)
    depth = len(union.path)
    made.picks = {path: number for path, number in made.picks.items() if path[:depth] != union.path}
    made.picks[union.path] = int(chosen)


def _new_names(
    form: Control, given: Mapping[str, str], changed: list[Control]
) -> Iterator[tuple[Control, str]]:
    """Yield each map with a name typed for a new entry, unless it is in an alternative that is gone."""
    for control in within(form):
        new = given.get(reading.NEW + control.name, "") if control.kind == "map" else ""
        is_gone = any(control.path[: len(union.path)] == union.path for union in changed)
        if new.strip() and not is_gone:
            yield control, new


def _act(root: Mapping[str, Any], made: Pressed, verb: str, name: str) -> None:
    """Press a button; nothing happens if the form has none like it."""
    form = build(root, made.document, made.picked)
    path = next((one.path for one in within(form) if one.name == name), ())
    try:
        made.document, made.focus = change(root, form, made.document, verb, name)
    except UnknownChangeError:
        return
    made.picks = _moved(made.picks, verb, path)
    made.secrets = _moved(made.secrets, verb, path)


def _moved(places: dict[Path, _Value], verb: str, item: Path) -> dict[Path, _Value]:
    found = ((after(path, verb, item), value) for path, value in places.items())
    return {path: value for path, value in found if path is not None}
