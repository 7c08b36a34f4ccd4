"""Read JSON that users type, and mark problems in place."""

from __future__ import annotations

from collections.abc import Sequence

from engine.values.errors import InvalidValueError, LimitError, ParamError
from engine.values.serialization import InvalidJSON, read_json
from studio.forms import json_places
from studio.forms.checked import MOST_PROBLEMS, Checked, Problem


def read_text(text: str, field: str, *, is_optional: bool = False) -> Checked:
    """Read a JSON text. An empty text is null if `is_optional`."""
    if is_optional and not text.strip():
        return Checked(None, ())
    try:
        return Checked(read_json(text, what=field), ())
    except InvalidJSON as error:
        return Checked(None, (_syntax_problem(text, field, error),))
    except LimitError as error:
        return Checked(None, (Problem(field, str(error)),))
    except InvalidValueError as error:
        return Checked(None, (Problem(field, str(error), path=error.path),))


def placed(text: str, field: str, errors: Sequence[ParamError]) -> list[Problem]:
    """Return the problems of the fields, each with its place in the text."""
    if not text.strip():
        return [Problem(field, error["message"], path=error["path"]) for error in errors]
    problems = []
    find = json_places.finder(text)
    for error in errors[:MOST_PROBLEMS]:
        place = find([part for part in error["path"].split("/") if part])
        line, column = json_places.line_and_column(text, place.start)
        start, end = json_places.utf16(text, place.start), json_places.utf16(text, place.end)
        problems.append(Problem(field, error["message"], error["path"], line, column, start, end))
    return problems


def _syntax_problem(text: str, field: str, error: InvalidJSON) -> Problem:
    lines = text.split("\n")
    line, column = error.line or 1, error.column or 1
    at = sum(len(one) + 1 for one in lines[: line - 1]) + column - 1
    start = json_places.utf16(text, min(at, len(text)))
    # Nothing can be underlined at the end of the text: mark the last character.
    start = max(0, min(start, json_places.utf16(text, len(text)) - 1))
    return Problem(
        field, error.message, path=error.path, line=line, column=column, start=start, end=start + 1
    )
