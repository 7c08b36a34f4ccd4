"""The form of an answer: read what was typed as one JSON value, or show it again with its problems."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.values.errors import InvalidParamsError, InvalidValueError, LimitError, ParamError
from engine.values.json_schema import check
from studio.approvals.controls import MOMENT, NOTHING, ROOT, Control, within
from studio.forms.checked import MOST_PROBLEMS, Checked, Problem
from studio.forms.json_text import read_text
from studio.forms.typed_secrets import hidden

_WITHOUT_ZONE = re.compile(r"\d{4,6}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?", re.ASCII)


def read(
    control: Control, given: Mapping[str, str], schema_of_it: Mapping[str, Any] | None = None
) -> Checked:
    """Read what was typed: the value, or what cannot be parsed and what the schema rejects in the rest."""
    problems: list[Problem] = []
    value = _read(control, given, problems)
    problems += _refused(control, value, schema_of_it, {problem.path for problem in problems})
    return Checked(None if value is NOTHING else value, tuple(problems[:MOST_PROBLEMS]))


def filled(control: Control, given: Mapping[str, str], problems: Sequence[Problem] = ()) -> Control:
    """Return the control with what was typed, and with the problems of each field."""
    wrong = dict.fromkeys(problem.message for problem in problems if problem.path == control.path)
    return replace(
        control,
        text=_sent_back(control, given.get(control.name, "")),
        problems=tuple(wrong),
        children=tuple(filled(child, given, problems) for child in control.children),
    )


def placed(control: Control, errors: Sequence[ParamError]) -> list[Problem]:
    """Assign each error of a rejected answer to the nearest control around its path."""
    names = {one.path for one in within(control)}
    problems = []
    for error in errors[:MOST_PROBLEMS]:
        path = error["path"]
        while path and path not in names:
            path = path.rpartition("/")[0]
        inner = error["path"].removeprefix(path).strip("/")
        message = f"{inner}: {error['message']}" if inner else error["message"]
        problems.append(Problem(ROOT, message, path))
    return problems


def _refused(
    control: Control, value: Any, schema_of_it: Mapping[str, Any] | None, unread: Container[str]
) -> list[Problem]:
    """Validate against the schema. Do not report fields again that could not be parsed and are missing."""
    if value is NOTHING:
        return []
    try:
        check(value, schema_of_it)
    except InvalidParamsError as error:
        return [problem for problem in placed(control, error.errors) if problem.path not in unread]
    except (InvalidValueError, LimitError) as error:
        return [Problem(ROOT, str(error))]
    return []


def _sent_back(control: Control, text: str) -> str:
    """Return what was typed, without secrets."""
    if control.children or control.is_secret:
        return ""
    return hidden(text, control.schema) if control.kind == "json" else text


def _read(control: Control, given: Mapping[str, str], problems: list[Problem]) -> Any:
    if control.kind == "group":
        return _read_group(control, given, problems)
    text = given.get(control.name, "").replace("\r\n", "\n")
    if not text.strip():
        return _empty(control, text, problems)
    if control.type == MOMENT:
        return _with_zone(text.strip())
    if control.kind in ("text", "area"):
        return text
    if control.choices:
        return _chosen(control, text, problems)
    checked = read_text(text.strip(), control.name)
    if control.kind == "number" and (
        not checked.is_good or isinstance(checked.value, bool) or not isinstance(checked.value, int | float)
    ):
        problems.append(Problem(ROOT, "Enter a number.", control.path))
        return NOTHING
    for problem in checked.problems:
        where = f"Line {problem.line}, column {problem.column}: " if problem.line else ""
        problems.append(Problem(ROOT, where + problem.message, control.path))
    return checked.value if checked.is_good else NOTHING


def _with_zone(text: str) -> str:
    """Return a time as JSON has it. The input sends none of the zone, which is UTC."""
    if not _WITHOUT_ZONE.fullmatch(text):
        return text
    return f"{text}Z" if text.count(":") == 2 else f"{text}:00Z"


def _read_group(control: Control, given: Mapping[str, str], problems: list[Problem]) -> Any:
    """Read an object. Leave out an optional one if none of its fields was filled in."""
    if not control.is_required and not any(given.get(one.name, "").strip() for one in within(control)):
        return control.nothing
    read = {child.key: _read(child, given, problems) for child in control.children}
    return {key: value for key, value in read.items() if value is not NOTHING}


def _empty(control: Control, text: str, problems: list[Problem]) -> Any:
    if not control.is_required:
        return control.nothing
    if control.kind in ("text", "area") and not control.is_secret:
        return text  # the schema decides whether it may be empty
    problems.append(Problem(ROOT, "Choose one." if control.choices else "This is required.", control.path))
    return NOTHING


def _chosen(control: Control, text: str, problems: list[Problem]) -> Any:
    if text in (sent for sent, _ in control.choices):
        return json.loads(text)
    problems.append(Problem(ROOT, "Choose one of these.", control.path))
    return NOTHING
