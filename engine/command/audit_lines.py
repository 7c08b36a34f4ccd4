"""Rows of the audit trail, as `workflow show` and `workflow errors show` print them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime

from engine.command import text
from engine.command.subcommand import Terminal
from engine.status.json_text import Document

INDENT = "  "


def audit_lines(terminal: Terminal, rows: Sequence[Document], now: datetime) -> Iterator[str]:
    """Yield a line for each row, and notes in full."""
    if not rows:
        return
    yield ""
    yield "AUDIT"
    cells = [
        (
            text.ago(action["at"], now),
            text.plain(action["actor"]) or "the engine",
            action["verb"] if action["outcome"] == "done" else f"{action['verb']} ({action['outcome']})",
            "" if _is_note(action) else text.plain(action["reason"]),
        )
        for action in rows
    ]
    for action, cell in zip(rows, text.columns(cells), strict=True):
        yield text.cut(text.GAP.join(cell).rstrip(), terminal.width)
        if _is_note(action):
            yield from _note(terminal, action["reason"])


def _is_note(action: Document) -> bool:
    return action["verb"] in ("note", "error-note") and action["outcome"] == "done"


def _note(terminal: Terminal, note: str) -> Iterator[str]:
    """Yield a note in full, with the lines that its author gave it."""
    for line in note.split("\n"):
        wrapped = textwrap.wrap(text.shown(line.expandtabs(4)), max(terminal.width - len(INDENT), 1))
        yield from (INDENT + part for part in wrapped or [""])
