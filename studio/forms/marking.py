"""Show a form: problems at the nearest control, texts as they were typed, and what has the focus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from studio.forms.checked import Problem
from studio.forms.controls import Control, within
from studio.forms.document import Path
from studio.forms.reading import FIELD, KEY, NEW, PICK


def nearest(form: Control, path: str) -> Control:
    """Return the control at a path, or the nearest around it."""
    parts, here = [part for part in path.split("/") if part], form
    for part in parts:
        inner = here.children[0] if here.kind == "union" else here
        found = next((one for one in inner.children if str(one.path[-1]) == part), None)
        if found is None and here.kind != "union":
            break
        # Paths of pydantic name the alternative, too.
        here = found or here
    is_input = here.kind == "union" and not here.children[0].is_compound
    return here.children[0] if is_input else here


def marked(
    form: Control,
    problems: list[Problem],
    again: Mapping[str, str],
    secrets: Mapping[str, str] | None,
    focus: Path | None,
) -> Control:
    """Return the controls with their problems.

    `again` are texts by name of input, `secrets` the pointers that secrets had on the page before.
    """
    said: dict[str, list[str]] = {}
    for one in problems:
        if one.field == "params":
            near = nearest(form, one.path)
            inner = one.path.removeprefix(near.where).strip("/")
            said.setdefault(near.id, []).append(f"{inner}: {one.message}" if inner else one.message)
    aim = _focus(form, focus)

    def mark(control: Control) -> Control:
        name = control.name
        return replace(
            control,
            text=again.get(FIELD + name, control.text) if not control.is_compound else control.text,
            key=control.key if control.key is None else again.get(KEY + name, control.key),
            chosen=again.get(PICK + name, control.chosen),
            new_name=again.get(NEW + name, ""),
            before=name if secrets is None else secrets.get(name, ""),
            problems=tuple(said.get(control.id, ())),
            has_focus=control is aim,
            children=tuple(mark(child) for child in control.children),
        )

    return mark(form)


def _focus(form: Control, path: Path | None) -> Control | None:
    """Return what has the focus after a change: the first input at its path, or the nearest control around it."""
    if path is None:
        return None
    for length in range(len(path), -1, -1):
        found = [one for one in within(form) if one.path == path[:length]]
        if found:
            inner = [
                one for one in within(found[-1]) if not one.is_compound and one.kind not in ("add", "fixed")
            ]
            return inner[0] if inner and length == len(path) else found[0]
    return None
