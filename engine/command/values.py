"""JSON that is given on the command line: as an argument, in a file, or on the standard input."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from engine.command.subcommand import Options
from engine.serialization import JSON, MAX_BYTES, read_json

STDIN = "-"


def take_value(parser: ArgumentParser, name: str, what: str) -> None:
    """Take a JSON text, or its file; nothing at all is null."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(name, nargs="?", metavar="JSON", help=f'{what} as JSON; "-" reads the standard input')
    group.add_argument("--file", type=_file, metavar="PATH", help=f"a file with {what} as JSON")


def value(options: Options, name: str) -> JSON:
    """Read the value. Raises InvalidJSON with line and column, or LimitError."""
    if options["file"] is not None:
        with Path(options["file"]).open("rb") as file:
            return read_json(file.read(MAX_BYTES + 1), what=name)
    if options[name] == STDIN:
        return read_json(_standard_input(), what=name)
    return None if options[name] is None else read_json(options[name], what=name)


def _standard_input() -> bytes | str:
    # A test, or whoever calls the command, may have put a text in its place.
    source = getattr(sys.stdin, "buffer", sys.stdin)
    given: bytes | str = source.read(MAX_BYTES + 1)
    return given


def _file(text: str) -> str:
    if not Path(text).is_file():
        raise ArgumentTypeError(f'"{text}" is no file.')
    return text
