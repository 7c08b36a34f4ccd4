from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db import Error

from engine.command import refusals
from engine.command.program import Program
from engine.command.subcommand import Subcommand
from engine.command.subcommands import GROUPS, SUBCOMMANDS
from engine.command.terminal import Terminal
from engine.values.errors import RepriseError

REFUSED = 1  # what argparse does not take ends with 2


class Command(Program):
    help = (
        "Start, look at and steer instances of workflows, as the Studio does: with the same checks, and with a row in "
        f"the audit trail. Exits with 0 when it is done, with {REFUSED} and the reason on the standard error when it "
        "is refused, and with 2 on a usage error."
    )
    # An operator steers what runs now; what is wrong with the code of a workflow, `check` and `lintworkflows` tell.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        words = _words(parser)
        for subcommand in SUBCOMMANDS:
            _add(words, subcommand)
        for name, (what, subcommands, default) in GROUPS.items():
            group = words.add_parser(name, help=what, description=f"{what.capitalize()}.")
            if default is not None:
                _take(group, default)
            inner = _words(group, required=default is None)
            for subcommand in subcommands:
                _add(inner, subcommand)

    def handle(self, *args: Any, **options: Any) -> None:
        terminal = Terminal(self.stdout, self.style, is_json=options["json"])
        subcommand: Subcommand = options["subcommand"]
        try:
            subcommand.run(terminal, options)
        except (RepriseError, Error) as error:
            if options["traceback"]:
                raise
            self._refuse(refusals.text(error, is_json=terminal.is_json))

    def _refuse(self, text: str) -> None:
        if not getattr(self, "_called_from_command_line", False):
            raise CommandError(text, returncode=REFUSED)
        # As it is: Django writes the name of its own class before what a CommandError says, which is no JSON.
        self.stderr.write(text)
        sys.exit(REFUSED)


def _words(parser: ArgumentParser, *, required: bool = True) -> Any:
    return parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", required=required)


def _add(words: Any, subcommand: Subcommand) -> None:
    parser = words.add_parser(
        subcommand.name, help=subcommand.help, description=f"{subcommand.help.capitalize()}."
    )
    _take(parser, subcommand)


def _take(parser: ArgumentParser, subcommand: Subcommand) -> None:
    subcommand.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.set_defaults(subcommand=subcommand)
