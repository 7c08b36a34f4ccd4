"""The audit trail as a file, in CSV or JSON, generated in batches while it is sent."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping

from engine.models import Audit

COLUMNS = (
    "key",
    "at",
    "person",
    "user_key",
    "verb",
    "outcome",
    "workflow",
    "instance",
    "before",
    "after",
    "reason",
    "data",
)
# Characters that start a formula; they have full-width forms, too.
_SIGNS = frozenset("=+-@\N{MINUS SIGN}")
# What a spreadsheet may ignore before a formula: blanks, controls, marks and invisible letters.
_UNSEEN = frozenset({"Cc", "Cf", "Mn", "Zl", "Zp", "Zs"})
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")


def as_csv(batches: Iterable[list[Audit]]) -> Iterator[str]:
    """Write a header and rows. Spreadsheets read no cell as a formula."""
    yield _lines([COLUMNS])
    for batch in batches:
        yield _lines([harmless(cell) for cell in _cells(entry)] for entry in batch)


def as_json(batches: Iterable[list[Audit]]) -> Iterator[str]:
    """Write one object. Its last key, `is_whole`, says whether it contains every matching row."""
    before, is_whole = '{"entries": [\n', False
    for batch in batches:
        is_whole = not batch
        for entry in batch:
            yield before + json.dumps(_fields(entry), ensure_ascii=False, default=str)
            before = ",\n"
    opening = before if before.startswith("{") else ""
    yield f'{opening}\n], "is_whole": {json.dumps(is_whole)}}}\n'


FORMS: Mapping[str, tuple[str, Callable[[Iterable[list[Audit]]], Iterator[str]]]] = {
    "csv": ("text/csv; charset=utf-8", as_csv),
    "json": ("application/json", as_json),
}


def harmless(text: str) -> str:
    """Quote what a spreadsheet would evaluate, so that `=HYPERLINK(…)` stays text."""
    first = next((one for one in text if not _is_unseen(one)), "")
    is_formula = not _SIGNS.isdisjoint(unicodedata.normalize("NFKC", first))
    return f"'{text}" if is_formula or text.startswith(("\t", "\r", "\n")) else text


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN or character in _FILLERS


def _fields(entry: Audit) -> dict[str, object]:
    own = {"at": entry.at.isoformat(), "person": entry.actor, "instance": entry.instance_id}
    return {name: own[name] if name in own else getattr(entry, name) for name in COLUMNS}


def _cells(entry: Audit) -> Iterator[str]:
    for name, value in _fields(entry).items():
        if name == "data":
            yield "" if value is None else json.dumps(value, ensure_ascii=False, default=str)
        else:
            yield str(value)


def _lines(rows: Iterable[Iterable[str]]) -> str:
    written = io.StringIO()
    csv.writer(written).writerows(rows)
    return written.getvalue()
