"""`workflow note`: add a note to an instance."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator

from engine.command import text
from engine.command.address import take_instance, take_name
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.json_text import Document


def _arguments(parser: ArgumentParser) -> None:
    take_instance(parser)
    take_text(parser)
    take_name(parser)


def take_text(parser: ArgumentParser) -> None:
    """Take the text of a note."""
    parser.add_argument(
        "text", metavar="TEXT", help="the note: up to 4,000 characters; @name mentions a user"
    )


def _lines(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    yield f"The note was added to {options['instance']}."
    yield from mentions_line(found["note"])


def mentions_line(note: Document) -> Iterator[str]:
    """Say whom a note mentions."""
    mentions = (note["data"] or {}).get("mentions")
    if mentions:
        yield f"It mentions {text.plain(', '.join(mentions))}."


NOTE = Subcommand("note", "add a note to an instance", _arguments, _lines)
