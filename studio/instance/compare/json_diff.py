"""Where two JSON values differ, by path. What is secret is never compared: only the workflow can read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from engine.values.serialization import envelope, show_path
from studio.display import payloads

MOST = 100  # differences
SHOWN = 160  # characters of a value

Path = tuple[str | int, ...]
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """A place with another value, or with a value on one side only. A side without one is None."""

    path: str
    here: str | None
    there: str | None


@dataclass(frozen=True, slots=True)
class Differences:
    """The first differences of two values."""

    rows: tuple[Difference, ...] = ()
    has_more: bool = False
    secrets: int = 0  # that both have at the same place


def differences(here: object, there: object) -> Differences:
    """Compare two values. Items of lists are compared by position, from both ends."""
    secrets: list[Path] = []
    rows = tuple(islice(_walk(here, there, (), secrets), MOST + 1))
    return Differences(rows[:MOST], len(rows) > MOST, len(secrets))


def _walk(here: object, there: object, path: Path, secrets: list[Path]) -> Iterator[Difference]:
    if envelope.is_envelope(here) and envelope.is_envelope(there):
        secrets.append(path)
    elif envelope.is_envelope(here) or envelope.is_envelope(there):
        yield _difference(path, here, there)
    elif isinstance(here, dict) and isinstance(there, dict):
        for name in {**here, **there}:
            yield from _walk(here.get(name, _NOTHING), there.get(name, _NOTHING), (*path, name), secrets)
    elif isinstance(here, list) and isinstance(there, list):
        yield from _walk_lists(here, there, path, secrets)
    elif type(here) is not type(there) or here != there:
        yield _difference(path, here, there)


def _walk_lists(
    here: list[object], there: list[object], path: Path, secrets: list[Path]
) -> Iterator[Difference]:
    """Compare lists. What was added or removed in the middle leaves the items after it the same."""
    both = min(len(here), len(there))
    end = 0
    if len(here) != len(there):
        start = next((at for at in range(both) if not _is_same(here[at], there[at])), both)
        while end < both - start and _is_same(here[-1 - end], there[-1 - end]):
            end += 1
    for at in range(max(len(here), len(there)) - end):
        mine = here[at] if at < len(here) - end else _NOTHING
        other = there[at] if at < len(there) - end else _NOTHING
        yield from _walk(mine, other, (*path, at), secrets)


def _is_same(here: object, there: object) -> bool:
    """Return whether nothing differs, in one pass: to walk from both ends here would double with each level."""
    if envelope.is_envelope(here) or envelope.is_envelope(there):
        return envelope.is_envelope(here) and envelope.is_envelope(there)
    if isinstance(here, dict) and isinstance(there, dict):
        return here.keys() == there.keys() and all(_is_same(here[name], there[name]) for name in here)
    if isinstance(here, list) and isinstance(there, list):
        return len(here) == len(there) and all(_is_same(*both) for both in zip(here, there, strict=True))
    return type(here) is type(there) and here == there


def _difference(path: Path, here: object, there: object) -> Difference:
    return Difference(show_path(path).removeprefix("$").removeprefix(".") or "$", _text(here), _text(there))


def _text(value: object) -> str | None:
    if value is _NOTHING:
        return None
    return payloads.one_line(payloads.stored_text(value), SHOWN)
