"""A traceback in parts: the frames of the project's own code to read, the others folded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from textwrap import dedent

from studio.instance.steps.failures import Failure

LONGEST_MESSAGE = 4_000
_HEAD = "Traceback (most recent call last):"
_PACKAGE = re.compile(r"/(?:site|dist)-packages/([A-Za-z0-9_]+)")
MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class Part:
    """Lines next to each other that are own code, or are not."""

    is_own: bool
    text: str
    frames: int = 0
    of: str = ""  # whose code the frames are


@dataclass(frozen=True, slots=True)
class Trace:
    """A traceback: its parts, and what was raised at its end."""

    parts: tuple[Part, ...]
    type: str
    message: str
    text: str  # all of it, to copy

    @property
    def has_own(self) -> bool:
        return any(part.is_own and part.frames for part in self.parts)


def trace_of(failure: Failure) -> Trace:
    """Return the traceback of a recorded error."""
    lines = [line for line in failure.traceback if line[0].strip() != _HEAD]
    while lines and not _is_inside(lines[-1][0]):
        lines.pop()  # the exception itself, which is shown apart
    parts = tuple(_parts(lines))
    raised = f"{failure.type}: {failure.message}" if failure.message else failure.type
    text = failure.text or raised
    return Trace(parts, failure.type, failure.message[:LONGEST_MESSAGE], text)


def _is_inside(line: str) -> bool:
    return line.startswith("  ")


def _parts(lines: Iterable[tuple[str, bool]]) -> Iterator[Part]:
    for is_own, group in groupby(lines, key=lambda line: line[1]):
        found = [line for line, _ in group]
        files = [line for line in found if line.lstrip().startswith("File ")]
        yield Part(is_own, dedent("\n".join(found)), len(files), "" if is_own else _names(files))


def _names(files: Iterable[str]) -> str:
    """Name whose code the frames are: packages by their folder."""
    names = list(dict.fromkeys(_name(line) for line in files))
    shown = names[:MOST_NAMES]
    if len(names) > MOST_NAMES:
        return f"{', '.join(shown)} and others"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def _name(line: str) -> str:
    package = _PACKAGE.search(line)
    if package:
        return package[1]
    return "the engine" if "/engine/" in line else "Python"
