"""Read JSON that users type, and mark problems in place: find where values are in a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.values.errors import InvalidValueError, LimitError, ParamError
from engine.values.serialization import InvalidJSON, read_json, spans_of
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
    place_at = finder(text)
    for error in errors[:MOST_PROBLEMS]:
        place = place_at([part for part in error["path"].split("/") if part])
        line, column = line_and_column(text, place.start)
        start, end = utf16(text, place.start), utf16(text, place.end)
        problems.append(Problem(field, error["message"], error["path"], line, column, start, end))
    return problems


def _syntax_problem(text: str, field: str, error: InvalidJSON) -> Problem:
    lines = text.split("\n")
    line, column = error.line or 1, error.column or 1
    at = sum(len(one) + 1 for one in lines[: line - 1]) + column - 1
    start = utf16(text, min(at, len(text)))
    # Nothing can be underlined at the end of the text: mark the last character.
    start = max(0, min(start, utf16(text, len(text)) - 1))
    return Problem(
        field, error.message, path=error.path, line=line, column=column, start=start, end=start + 1
    )


@dataclass(frozen=True, slots=True)
class Place:
    """A range of the text, in characters."""

    start: int
    end: int


def find(text: str, path: Sequence[str]) -> Place:
    """Return the place of the value at `path`, or of the nearest value around it if it is missing.

    The text must be valid JSON. Of an object around a missing field, mark only the opening brace: underlining the whole
    document helps nobody.
    """
    return finder(text)(path)


def finder(text: str) -> Callable[[Sequence[str]], Place]:
    """Return `find` for one text, which is parsed only once."""
    places = {tuple(map(str, where)): Place(*span) for where, span in spans_of(text).items()}

    def found(path: Sequence[str]) -> Place:
        wanted = tuple(path)
        if wanted in places:
            return places[wanted]
        nearest = next(wanted[:depth] for depth in range(len(wanted), -1, -1) if wanted[:depth] in places)
        start = places[nearest].start
        return Place(start, start + 1)

    return found


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return line and column, both starting at 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def utf16(text: str, offset: int) -> int:
    """Return the offset in UTF-16 units, as in JavaScript."""
    return len(text[:offset].encode("utf-16-le", "surrogatepass")) // 2
