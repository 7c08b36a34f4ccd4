"""The paths that `@workflow(search=…)` declares: which values of params and output the search finds by an index."""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.values.serialization import envelope
from engine.values.serialization.rules import text_fault

MAX_PATHS = 20  # per workflow
MAX_PATH = 200  # characters
MAX_PARTS = 10

PARAMS, OUTPUT = "params", "output"
MAX_STORED_PATH = len(f"{PARAMS}.") + MAX_PATH

_INDEX = re.compile(r"0|[1-9][0-9]*")
# PostgreSQL takes all of these for positions in an array: from the end, or the same one written in another way.
_NEARLY_INDEX = re.compile(r"\s*[+-]?[0-9]+\s*")


def read_search_paths(value: object) -> tuple[str, ...]:
    """Return the paths in full: `customer.id` is `params.customer.id`. Raises ValueError."""
    given = list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else None
    if given is None:
        raise ValueError('It must be a list of paths, such as ["customer.id", "output.total"].')
    if len(given) > MAX_PATHS:
        raise ValueError(f"It has {len(given):,} paths; the limit is {MAX_PATHS}.")
    wrong = [one for one in given if not isinstance(one, str)]
    if wrong:
        raise ValueError(f"Each path must be a string, not of type {type(wrong[0]).__qualname__}.")
    found = list[str]()
    for one in given:
        path = _full(one)
        if path in found:
            raise ValueError(f'"{path}" is declared twice.')
        found.append(path)
    return tuple(found)


def _full(path: str) -> str:
    """Return the path with its first part, `params` or `output`."""
    if len(path) > MAX_PATH:
        raise ValueError(f'"{path[:50]}…" has {len(path):,} characters; the limit is {MAX_PATH}.')
    if broken := text_fault(path):
        raise ValueError(f"{path!r}: {broken[1]}")
    parts = path.split(".")
    if len(parts) > MAX_PARTS:
        raise ValueError(f'"{path}" has {len(parts)} parts; the limit is {MAX_PARTS}.')
    if not all(parts):
        raise ValueError(f'"{path}" has an empty part. Join keys by single dots: "customer.id".')
    if envelope.KEY in parts:
        raise ValueError(f'"{path}": secrets are encrypted, so they cannot be searched for.')
    for part in parts:
        if _NEARLY_INDEX.fullmatch(part) and not _INDEX.fullmatch(part):
            rule = "Positions in an array count from 0, without a sign or leading zeros."
            raise ValueError(f'"{path}": "{part}" is not a position. {rule}')
    return path if parts[0] in (PARAMS, OUTPUT) else f"{PARAMS}.{path}"
