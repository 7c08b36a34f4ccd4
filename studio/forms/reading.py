"""Read a posted form into its document. Only what was changed is written: everything else stays as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.values.serialization import MAX_KEY
from engine.values.serialization.secret_schema import holds_secrets
from studio.forms.checked import Problem
from studio.forms.controls import Control, within
from studio.forms.document import MISSING, Path, at, pointer, put, renamed
from studio.forms.inputs import is_same, meant

# What the names of inputs begin with, before a pointer.
FIELD, ZONE, NULL, KEY, PICK, PICKED, NEW = "f.", "z.", "n.", "k.", "u.", "o.", "new."
LONG_NAME = f"A name has at most {MAX_KEY} characters."


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read. Paths of controls are those before entries of maps were renamed; `now` says where they are."""

    document: Any
    problems: tuple[Problem, ...]
    names: Mapping[Path, str]  # of entries of maps that were renamed, by path before
    again: Mapping[
        str, str
    ]  # texts to show again as they were typed, by name of input, if there are problems

    def now(self, path: Path) -> Path:
        return tuple(self.names.get(path[: depth + 1], part) for depth, part in enumerate(path))


@dataclass(frozen=True, slots=True)
class _Wrong:
    control: Control
    message: str
    typed: tuple[
        tuple[str, Control, str], ...
    ]  # what to show again: where its name begins, its control, the text


def read(form: Control, document: Any, given: Mapping[str, str], leaving: str | None = None) -> Reading:
    """Return the document with what was typed, and a problem for each text that cannot be read.

    The controls must be those of the document before. What is at the pointer `leaving` is about to be removed: it
    has no problems.
    """
    wrong: list[_Wrong] = []
    changing = [union.name for union, _ in repicked(form, given)]
    for control in within(form):
        if leaving and _is_inside(control, [leaving]):
            continue
        try:
            document = _with(document, control, given)
        except ValueError as error:
            if not _is_inside(control, changing):
                again = () if _may_hold_secrets(control) else ((FIELD, control, given[FIELD + control.name]),)
                wrong.append(_Wrong(control, str(error), again))
    document, names, more = _with_names(form, document, given)
    return _reading(form, Reading(document, (), names, {}), [*wrong, *more], given)


def _reading(form: Control, read: Reading, wrong: list[_Wrong], given: Mapping[str, str]) -> Reading:
    """Return what was read with its problems, where the controls are now."""
    if not wrong:
        return read
    problems, typed = [], [one for each in wrong for one in each.typed]
    for one in wrong:
        control = replace(one.control, path=read.now(one.control.path))
        problems.append(Problem("params", one.message, control.where, target=control.id))
    # With problems, nothing is added and no alternative is changed: what was typed for that waits, too.
    for control in within(form):
        begin = {"union": PICK, "map": NEW}.get(control.kind, "")
        typed += [(begin, control, given[begin + control.name])] if begin + control.name in given else []
    again = {begin + pointer(read.now(control.path)): text for begin, control, text in typed}
    return replace(read, problems=tuple(problems), again=again)


def _with(document: Any, control: Control, given: Mapping[str, str]) -> Any:
    typed = given.get(FIELD + control.name)
    if typed is None or control.is_compound or control.kind in ("add", "fixed"):
        return document
    zone, is_null = given.get(ZONE + control.name, control.zone), NULL + control.name in given
    if is_same(control, typed, zone, is_null=is_null):
        return document
    value = meant(control, typed, zone, is_null=is_null)
    if value is not MISSING or not control.is_member:
        return put(document, control.path, value)
    # Only a button removes an item or an entry: without a value, the others would get other numbers.
    if control.kind == "json":
        raise ValueError("Enter a value, such as null, or remove it.")
    return put(document, control.path, "")


def number_of(text: str) -> int:
    """Return the number of an alternative as browsers send it, or -1."""
    return int(text) if text.isdecimal() and len(text) <= 4 else -1


def picks(form: Mapping[str, str]) -> dict[str, int]:
    """Return the alternatives that the page showed, by pointer."""
    return {
        name.removeprefix(PICKED): number_of(value) for name, value in form.items() if name.startswith(PICKED)
    }


def repicked(form: Control, given: Mapping[str, str]) -> Iterator[tuple[Control, str]]:
    """Yield each union whose alternative was changed, and the alternative; not what is inside such a union."""
    if form.kind == "union":
        chosen = given.get(PICK + form.name, "")
        if number_of(chosen) != form.picked and 0 <= number_of(chosen) < len(form.choices):
            yield form, chosen
            return
    for child in form.children:
        yield from repicked(child, given)


def _with_names(
    form: Control, document: Any, given: Mapping[str, str]
) -> tuple[Any, dict[Path, str], list[_Wrong]]:
    """Rename the entries of maps, the innermost first, since their paths contain the names before."""
    done: dict[Path, str] = {}
    wrong: list[_Wrong] = []
    maps = [one for one in within(form) if one.kind == "map"]
    for control in sorted(maps, key=lambda one: -len(one.path)):
        names = [(KEY, one, given.get(KEY + one.name, one.key or "")) for one in control.children]
        changed = {str(one.key): name for _, one, name in names if name != one.key}
        message = _wrong_names([name for *_, name in names], given.get(NEW + control.name, ""))
        if message:
            wrong.append(_Wrong(control, message, tuple(names)))
        elif changed and at(document, control.path) is not MISSING:
            document = put(document, control.path, renamed(at(document, control.path), changed))
            done |= {(*control.path, key): name for key, name in changed.items()}
    return document, done, wrong


def _wrong_names(names: list[str], new: str) -> str:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        return f'Two entries have the name "{twice}". Give each its own.'
    return LONG_NAME if any(len(name) > MAX_KEY for name in (*names, new)) else ""


def _is_inside(control: Control, pointers: list[str]) -> bool:
    return any(f"{control.name}/".startswith(f"{one}/") for one in pointers)


def _may_hold_secrets(control: Control) -> bool:
    about = control.source.about
    return control.kind == "secret" or holds_secrets(about) or '"$ref"' in json.dumps(about)
