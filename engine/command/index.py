"""`workflow index`: fill the index of the declared search paths."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable

from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.json_text import Document


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--workflow", action="append", metavar="NAME", help="only the paths of this workflow; repeatable"
    )


def _lines(terminal: Terminal, found: Document, options: Options) -> Iterable[str]:
    """Return no lines: `engine.command.local.index` prints its progress as it works."""
    return ()


INDEX = Subcommand(
    "index", "index the declared search paths of all instances, and drop undeclared paths", _arguments, _lines
)
