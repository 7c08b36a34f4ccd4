"""Read a posted form into its document. Only what was changed is written: everything else stays as it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine.values.serialization.secret_schema import holds_secrets
from studio.forms.checked import Problem
from studio.forms.controls import Control, within
from studio.forms.document import at, put, renamed
from studio.forms.inputs import is_same, meant
from studio.forms.json_text import read_text

FIELD, ZONE, NULL, KEY, PICK, PICKED, NEW = "f.", "z.", "n.", "k.", "u.", "o.", "new."  # before a pointer


def read(form: Control, document: Any, given: Mapping[str, str]) -> tuple[Any, list[Problem]]:
    """Return the document with what was typed, and a problem for each text of JSON that cannot be read.

    The controls must be those of the document before.
    """
    problems: list[Problem] = []
    for control in within(form):
        typed = given.get(FIELD + control.name)
        if typed is None or control.is_compound or control.kind in ("add", "fixed"):
            continue
        zone, is_null = given.get(ZONE + control.name, control.zone), NULL + control.name in given
        if is_same(control, typed, zone, is_null=is_null):
            continue
        if control.kind == "json" and typed.strip():
            checked = read_text(typed.replace("\r\n", "\n"), "params")
            if not checked.is_good:
                problems += [_unread(control, one) for one in checked.problems]
                continue
        try:
            document = put(document, control.path, meant(control, typed, zone, is_null=is_null))
        except ValueError:
            problems.append(Problem("params", "Choose one of these.", control.where, target=control.id))
    return _with_keys(form, document, given, problems), problems


def picks(form: Mapping[str, str]) -> dict[str, int]:
    """Return the alternatives that the page showed, by pointer."""
    shown = {name.removeprefix(PICKED): value for name, value in form.items() if name.startswith(PICKED)}
    return {name: int(value) for name, value in shown.items() if value.isdecimal()}


def repicked(form: Control, given: Mapping[str, str]) -> Control | None:
    """Return a union whose alternative was changed, which without JavaScript needs another press of a button."""
    unions = (one for one in within(form) if one.kind == "union")
    return next(
        (one for one in unions if given.get(PICK + one.name, str(one.picked)) != str(one.picked)), None
    )


def _with_keys(form: Control, document: Any, given: Mapping[str, str], problems: list[Problem]) -> Any:
    """Rename the entries of maps, the innermost first, since their paths contain the names before."""
    maps = [one for one in within(form) if one.kind == "map"]
    for control in sorted(maps, key=lambda one: -len(one.path)):
        members = at(document, control.path)
        typed = {
            one.key: given.get(KEY + one.name, one.key) for one in control.children if one.key is not None
        }
        if not isinstance(members, dict) or all(name == key for key, name in typed.items()):
            continue
        names = [typed.get(key, key) for key in members]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            message = f'Two entries have the name "{twice}". Give each its own.'
            problems.append(Problem("params", message, control.where, target=control.id))
            continue
        changed = {key: str(name) for key, name in typed.items()}
        document = put(document, control.path, renamed(members, changed))
    return document


def _unread(control: Control, problem: Problem) -> Problem:
    where = f"line {problem.line}, column {problem.column}: " if problem.line else ""
    return Problem("params", where + problem.message, control.where, target=control.id)


def raw_texts(form: Control, given: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of JSON as they were typed, to be shown again if they cannot be read. None has a secret."""
    fields = [one for one in within(form) if one.kind == "json" and FIELD + one.name in given]
    return {one.name: "" if _may_hold_secrets(one) else given[FIELD + one.name] for one in fields}


def _may_hold_secrets(control: Control) -> bool:
    about = control.source.about
    return holds_secrets(about) or '"$ref"' in json.dumps(about)
