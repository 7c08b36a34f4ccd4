"""Columns that users add to the list: the values at a path of params or output."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import connection

from engine.status.sentences import bidi
from engine.values.serialization import Unreadable, decode, read_beginning
from engine.values.serialization.envelope import KEY, MASK, masked_text

Path = tuple[str, ...]

MOST = 6
ROOTS = ("params", "output")
SHOWN = 60  # characters in a cell
READ = 400  # characters of a value that are read, for its tooltip
LONGEST_PATH = 200
DEEPEST = 12

# One query for all cells of a page. Of large values only the beginning leaves the database.
_VALUE = "left((i.{root} #> %s)::text, {length})"
_VALUES = "SELECT i.key, {values} FROM engine_instance i WHERE i.key = ANY(%s)"


@dataclass(frozen=True, slots=True)
class Cell:
    """A value as short text, and more of it for a tooltip. Both are empty if the instance has no such value."""

    text: str = ""
    title: str = ""
    kind: str = "none"  # text · atom (a number, true, false, null) · json · secret


def path_of(text: str) -> Path | None:
    """Return the path that a text such as `params.customer.id` names; None if it names none."""
    parts = tuple(text.strip().split("."))
    is_path = len(parts) > 1 and parts[0] in ROOTS and all(parts) and len(parts) <= DEEPEST
    return parts if is_path and len(text) <= LONGEST_PATH and text.isprintable() else None


def paths_of(texts: Iterable[str]) -> tuple[tuple[Path, ...], list[str]]:
    """Return the paths in lists such as `params.region,output.total`, and the parts that cannot be columns."""
    found: dict[Path, None] = {}
    wrong = []
    for part in (part for text in texts for part in text.split(",")):
        path = path_of(part)
        if path in found or not part.strip():
            continue
        if path is None or len(found) == MOST:
            wrong.append(part)
        else:
            found[path] = None
    return tuple(found), wrong


def cells_of(keys: Sequence[int], paths: Sequence[Path]) -> Mapping[int, tuple[Cell, ...]]:
    """Read the cells of the rows of a page, with one query; none without columns."""
    if not keys or not paths:
        return {}
    values = ", ".join(_VALUE.format(root=path[0], length=READ) for path in paths if path[0] in ROOTS)
    with connection.cursor() as cursor:
        cursor.execute(_VALUES.format(values=values), [*(list(path[1:]) for path in paths), list(keys)])
        rows = cursor.fetchall()
    return {key: tuple(map(_cell, paths, texts)) for key, *texts in rows}


def _cell(path: Path, text: str | None) -> Cell:
    if text is None:
        return Cell()
    if KEY in path:  # a path into an encrypted value
        return Cell(MASK, "Stored encrypted; only the workflow can read it.", "secret")
    return cell_of(text)


def cell_of(text: str) -> Cell:
    """Return a stored JSON value, or its beginning, as a cell. Encrypted values are masked."""
    is_secret = KEY in text
    shown = masked_text(text)
    value = _value(shown)
    if value == MASK and is_secret:
        return Cell(MASK, "Stored encrypted; only the workflow can read it.", "secret")
    if isinstance(value, str):
        said, kind = value, "text"
    else:
        kind = "json" if isinstance(value, dict | list) else "atom"
        said = (
            json.dumps(value, ensure_ascii=False) if kind == "json" else shown
        )  # a float would round numbers
    return Cell(_short(said), bidi.isolated(said) if len(said) > SHOWN or "\n" in said else "", kind)


def _value(text: str) -> object:
    """Return the value of a text that may be cut off, also within a string."""
    value = decode(text)
    if not isinstance(value, Unreadable):
        return value
    begun = read_beginning(f"[{text}")
    return begun[0][0] if begun and isinstance(begun[0], list) and begun[0] else None


def _short(text: str) -> str:
    line = " ".join(text[: 2 * SHOWN].split())
    return bidi.isolated(line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…")
