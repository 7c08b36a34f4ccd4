"""Check that a command in a file of docs/deploy is one that exists."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from unittest import mock

from daphne.cli import CommandLineInterface
from django.core.management import get_commands, load_command_class


def check_command(words: Sequence[str]) -> None:
    """Fail if `daphne …` or `python manage.py …` would not understand its arguments."""
    match list(words):
        case ["daphne", *arguments]:
            _check_daphne(arguments)
        case ["python", "manage.py", name, *arguments]:
            assert name in get_commands(), f"manage.py has no command {name}"
            found = get_commands()[name]
            command = load_command_class(found, name) if isinstance(found, str) else found
            with mock.patch("sys.exit", side_effect=AssertionError(f"manage.py {name} {arguments}")):
                command.create_parser("manage.py", name).parse_args(arguments)
        case _:
            raise AssertionError(f"neither daphne nor manage.py: {words}")


def _check_daphne(arguments: Sequence[str]) -> None:
    given = CommandLineInterface().parser.parse_args(list(arguments))
    module, _, name = given.application.partition(":")
    assert hasattr(import_module(module), name), given.application
    # Its default, 125 MB, is more than the Studio ever takes.
    assert given.websocket_max_message_size == 1_048_576
