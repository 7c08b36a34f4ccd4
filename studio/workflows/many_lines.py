"""Instances to start, one a line: CSV with a header, or JSON lines. What cannot be read is refused with its line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from studio.forms.document import dump, put
from studio.forms.json_text import read_text
from studio.forms.shape import Shape, shape_of
from studio.workflows.address import MOST_PARTS, shape_at, value_of

OWN = ("id", "at", "tags")  # columns that are no params
PARAM = "p."  # before a param with such a name
DELIMITERS = ",;\t"
MOST_COLUMNS = 1_000


@dataclass(frozen=True, slots=True)
class Line:
    """A line that can be read, as an item of `start_many`."""

    number: int
    item: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that starts nothing."""

    number: int
    rule: str


@dataclass(slots=True)
class Lines:
    """What was read. With a `problem`, nothing can be started."""

    good: list[Line] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    problem: str = ""

    @property
    def total(self) -> int:
        return len(self.good) + len(self.refused)


class LineError(Exception):
    """Why a line, or the whole text, cannot be read."""


def read_lines(text: str, root: Mapping[str, Any] | None, most: int) -> Lines:
    """Read up to so many lines. `root` is the schema of the params."""
    text, found = text.removeprefix("\ufeff"), Lines()
    if "\0" in text:
        found.problem = (
            f"Line {text[: text.index(chr(0))].count(chr(10)) + 1} has a NUL. Save the file as UTF-8."
        )
        return found
    reading = _json_lines(text) if text.lstrip().startswith("{") else _csv_lines(text, root)
    try:
        for one in islice(reading, most + 1):
            if isinstance(one, Line):
                found.good.append(one)
            else:
                found.refused.append(one)
        if found.total > most:
            found.problem = f"There are more than {most:,} lines. Split the file."
    except LineError as error:
        found.problem = str(error)
    return found


def _json_lines(text: str) -> Iterator[Line | Refused]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        read = read_text(line, "line")
        if not read.is_good:
            yield Refused(number, read.problems[0].message)
        elif not isinstance(read.value, dict):
            yield Refused(number, "It must be an object with params, id, tags and at, all optional.")
        else:
            yield Line(number, read.value)


def _csv_lines(text: str, root: Mapping[str, Any] | None) -> Iterator[Line | Refused]:
    first = text.lstrip("\r\n").partition("\n")[0]
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=max(DELIMITERS, key=first.count), strict=True
    )
    columns: Columns | None = None
    number = 1
    while (row := _next_row(reader)) is not None:
        if any(cell.strip() for cell in row):
            if columns is None:
                columns = Columns(row, root)
            else:
                yield columns.line(number, row)
        number = reader.line_num + 1


def _next_row(reader: Any) -> list[str] | None:
    try:
        return next(reader, None)
    except csv.Error as error:
        raise LineError(f"Line {reader.line_num} is not CSV: {error}.") from None


class Columns:
    """The header: what each column is."""

    def __init__(self, names: Sequence[str], root: Mapping[str, Any] | None) -> None:
        self.names = [name.strip() for name in names]
        if len(self.names) > MOST_COLUMNS:
            raise LineError(
                f"The first line names {len(self.names):,} columns; the limit is {MOST_COLUMNS:,}."
            )
        known = _params_of(root)
        for name in self.names:
            if self.names.count(name) > 1:
                raise LineError(f'The first line names the column "{name[:100]}" twice.')
            if name not in OWN and known is not None and _path(name)[0] not in known:
                names_of_all = ", ".join([*OWN, *known])
                raise LineError(
                    f'The first line must name the columns. "{name[:100]}" is none of them: {names_of_all[:500]}.'
                )
        _check_paths([name for name in self.names if name not in OWN])
        self._shapes = {name: _shape(root, name) for name in self.names if name not in OWN}

    def line(self, number: int, row: Sequence[str]) -> Line | Refused:
        if len(row) != len(self.names):
            return Refused(
                number, f"It has {len(row)} values; the first line names {len(self.names)} columns."
            )
        item: dict[str, Any] = {}
        document: Any = {}
        for name, cell in zip(self.names, row, strict=True):
            if not cell.strip():
                continue  # left out
            if name in OWN:
                item[name] = [one.strip() for one in cell.split(",")] if name == "tags" else cell.strip()
            else:
                document = put(document, _path(name), value_of(self._shapes[name], cell))
        if self._shapes:
            item["params"] = read_text(dump(document), "params").value
        return Line(number, item)


def _check_paths(names: Sequence[str]) -> None:
    """Refuse columns of which one would overwrite another, and paths that lead nowhere."""
    by_path = dict[tuple[str, ...], str]()
    for name in names:
        if (same := by_path.setdefault(_path(name), name)) != name:
            raise LineError(f'The columns "{same[:100]}" and "{name[:100]}" are the same.')
    for path, name in by_path.items():
        if len(path) > MOST_PARTS or "" in path[1:]:
            raise LineError(
                f'The column "{name[:100]}" cannot be used: between dots are names, at most {MOST_PARTS} of them.'
            )
        around = next(
            (by_path[path[:length]] for length in range(1, len(path)) if path[:length] in by_path), None
        )
        if around is not None:
            raise LineError(f'The column "{around[:100]}" already has what "{name[:100]}" would set.')


def _path(name: str) -> tuple[str, ...]:
    return tuple(name.removeprefix(PARAM).split("."))


def _params_of(root: Mapping[str, Any] | None) -> list[str] | None:
    """Return the names of the params, or None if there may be any."""
    if root is None:
        return []
    shape = shape_of(root, root)
    return [*shape.about.get("properties", {})] if shape.kind == "group" else None


def _shape(root: Mapping[str, Any] | None, name: str) -> Shape:
    return Shape("json") if root is None else shape_at(root, _path(name))
