"""Add a note to an instance."""

from __future__ import annotations

from engine.command.local.finding import actor, find
from engine.command.subcommand import Options
from engine.status import documents
from engine.status.documents import Document
from engine.steer import notes


def note(options: Options) -> Document:
    row = notes.add_note(find(options["instance"]), options["text"], by=actor(options))
    return {"note": documents.action(row)}
