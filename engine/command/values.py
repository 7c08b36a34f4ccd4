"""JSON on the command line: as an argument, in a file, or on standard input."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from engine.command.subcommand import Options
from engine.values.errors import RepriseError
from engine.values.serialization import JSON, MAX_BYTES, read_json

STDIN = "-"


def take_value(parser: ArgumentParser, name: str, what: str) -> None:
    """Add the arguments for a JSON text or its file; without either, the value is null."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(name, nargs="?", metavar="JSON", help=f'{what} as JSON; "-" reads standard input')
    group.add_argument("--file", type=_file, metavar="PATH", help=f"a file with {what} as JSON")


def take_option(parser: ArgumentParser, name: str, what: str) -> None:
    """Add the options for a JSON text or its file; without either, nothing is given."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(f"--{name}", metavar="JSON", help=f'{what} as JSON; "-" reads standard input')
    group.add_argument("--file", type=_file, metavar="PATH", help=f"a file with {what} as JSON")


def is_given(options: Options, name: str) -> bool:
    return options["file"] is not None or options[name] is not None


def value(options: Options, name: str) -> JSON:
    """Read the value. Raises InvalidJSON with line and column, or LimitError."""
    if options["file"] is not None:
        return read_json(_file_content(options["file"]), what=name)
    if options[name] == STDIN:
        return read_json(_standard_input(), what=name)
    return None if options[name] is None else read_json(options[name], what=name)


def _file_content(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f'"{path}"', error.strerror) from error


def _standard_input() -> bytes | str:
    # A caller, such as a test, may have replaced it with a text stream; None means that it is closed.
    source = getattr(sys.stdin, "buffer", sys.stdin)
    if source is None:
        raise InputError("The standard input", "it is closed")
    try:
        given: bytes | str = source.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError("The standard input", error.strerror) from error
    return given


def _file(text: str) -> str:
    path = Path(text)
    # A pipe also works, as the shell makes one for <(command).
    if path.is_dir() or not path.exists():
        raise ArgumentTypeError(f'"{text}" is not a file.')
    return text


class InputError(RepriseError):
    """A file or the standard input of a command cannot be read.

    Check the path and its permissions: the message has the reason of the operating system.
    """

    def __init__(self, what: str, why: str | None) -> None:
        super().__init__(f"{what} cannot be read: {why}.")
