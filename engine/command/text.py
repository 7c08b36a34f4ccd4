"""Text for people: relative times, aligned columns, and no control characters."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from engine.status.json_text import Document
from engine.status.json_text import plain as as_plain
from engine.values.durations import format_duration
from engine.values.serialization.envelope import masked

GAP = "  "


def ago(moment: datetime | None, now: datetime) -> str:
    """Return roughly when it was or will be: `just now`, `5 m ago`, `in 3 h`; a dash for never."""
    if moment is None:
        return "-"
    if moment > now:
        return f"in {_roughly(moment - now)}"
    passed = now - moment
    return "just now" if passed < timedelta(seconds=1) else f"{_roughly(passed)} ago"


def _roughly(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def moment(at: datetime | None) -> str:
    return "-" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def took(start: datetime | None, end: datetime | None) -> str:
    return "-" if start is None or end is None else format_duration(max(end - start, timedelta(0)))


def plain(text: object) -> str:
    """Put a text on one line."""
    return shown(" ".join(str(text).split()))


def shown(line: str) -> str:
    """Replace control characters with a dot: text from steps may come from anywhere."""
    return "".join(char if char.isprintable() else "·" for char in line)


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def value(given: object, width: int) -> str:
    """Write the beginning of a JSON value on one line, its secrets masked."""
    return cut(plain(json.dumps(masked(given), ensure_ascii=False, default=as_plain)), width)


def columns(rows: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Pad the cells of rows so that columns are aligned, except for the last column."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))] if rows else []
    for row in rows:
        yield [
            cell if at == len(row) - 1 else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]


def count(number: int, one: str, more: str = "") -> str:
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def named(instance: Document) -> str:
    """Return an instance as lists and arguments name it."""
    return f"{instance['workflow']}/{instance['id']}"
