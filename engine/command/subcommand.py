"""The definition of a subcommand, and its output: lines for people, or one JSON document for programs."""

from __future__ import annotations

import shutil
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from engine.status.json_text import Document, as_json

NARROW = 80  # columns in which every answer is readable

Options = Mapping[str, Any]


class UsageError(Exception):
    """Arguments that do not go together, which the parser cannot know."""


class Out(Protocol):
    def write(self, text: str, /) -> Any: ...
    def isatty(self) -> bool: ...


class Terminal:
    def __init__(self, out: Out, style: Any, *, is_json: bool) -> None:
        self._out = out
        self._style = style
        self.is_json = is_json

    @property
    def width(self) -> int:
        """Return the number of columns; a very large number if this is not a terminal."""
        return max(shutil.get_terminal_size((NARROW, 24)).columns, NARROW) if self._out.isatty() else NARROW

    def answer(self, document: Mapping[str, Any], lines: Callable[[], Iterable[str]]) -> None:
        """Print the answer: as JSON if requested, else as lines, which are generated one by one."""
        if self.is_json:
            self._out.write(as_json(document))
            return
        for line in lines():
            self._out.write(line)

    def paint(self, status: str, text: str = "") -> str:
        """Color a status, only on a terminal; `text` is the status as printed, with its padding."""
        role = _ROLES.get(status)
        text = text or status
        if role is None or not self._out.isatty():
            return text
        painted: str = getattr(self._style, role)(text)
        return painted


# Django's names for the colors of a terminal.
_ROLES = {
    "complete": "SUCCESS",
    "errored": "ERROR",
    "timed_out": "ERROR",
    "lost": "ERROR",
    "stops": "ERROR",
    "unknown": "ERROR",
    "differs": "WARNING",
    "paused": "WARNING",
    "waiting_for_pause": "WARNING",
    "running": "MIGRATE_HEADING",
}


@dataclass(frozen=True, slots=True)
class Subcommand:
    """What people type, its arguments, and its answer as text. A source (`engine.command.source`) has the answer.

    `code` is the exit code for an answer. The texts are made of nothing but the document, wherever it comes from.
    """

    words: str
    help: str
    add_arguments: Callable[[ArgumentParser], None]
    lines: Callable[[Terminal, Document, Options], Iterable[str]]
    code: Callable[[Document], int] = lambda _: 0

    @property
    def name(self) -> str:
        """Return the last of its words."""
        return self.words.rpartition(" ")[2]
