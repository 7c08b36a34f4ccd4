from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import CommandError
from django.db import Error

from engine.command import refusals
from engine.command.choice import URL, chosen_source
from engine.command.program import Program
from engine.command.subcommand import Subcommand, Terminal, UsageError
from engine.command.subcommands import GROUPS, SUBCOMMANDS
from engine.values.errors import RepriseError

REFUSED = 1
USAGE = 2  # as argparse exits


class Command(Program):
    help = (
        "Start, show and control instances of workflows, as the Studio does: with the same checks, and with a row in "
        f"the audit trail. Exits with 0 on success, with {REFUSED} and the reason on standard error if the command is "
        f"refused, and with {USAGE} on a usage error."
    )
    # An operator controls what runs now; `check` and `lintworkflows` report what is wrong with a workflow's code.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        subparsers = _subparsers(parser)
        for subcommand in SUBCOMMANDS:
            _add(subparsers, subcommand)
        for name, (what, subcommands, default) in GROUPS.items():
            group = subparsers.add_parser(name, help=what, description=f"{what.capitalize()}.")
            if default is not None:
                _add_arguments(group, default)
            inner = _subparsers(group, required=default is None)
            for subcommand in subcommands:
                _add(inner, subcommand)

    def handle(self, *args: Any, **options: Any) -> None:
        if not os.environ.get(URL) and not settings.USE_TZ:  # named here, because no checks are run
            self._end("Reprise needs times with their offset. Add to the settings: USE_TZ = True", REFUSED)
        terminal = Terminal(self.stdout, self.style, is_json=options["json"])
        try:
            code = chosen_source().run(options["subcommand"], terminal, options)
        except UsageError as error:
            self._end(str(error), USAGE)
        except (RepriseError, Error) as error:
            if options["traceback"]:
                raise
            self._end(refusals.text(error, is_json=terminal.is_json), REFUSED)
        else:
            if code:
                self._end("", code)

    def _end(self, text: str, code: int) -> NoReturn:
        if not getattr(self, "_called_from_command_line", False):
            raise CommandError(text, returncode=code)
        # Written directly: Django prefixes a CommandError with the name of its class, which is not JSON.
        if text:
            self.stderr.write(text)
        sys.exit(code)


def _subparsers(parser: ArgumentParser, *, required: bool = True) -> Any:
    return parser.add_subparsers(title="subcommands", metavar="SUBCOMMAND", required=required)


def _add(subparsers: Any, subcommand: Subcommand) -> None:
    parser = subparsers.add_parser(
        subcommand.name, help=subcommand.help, description=f"{subcommand.help.capitalize()}."
    )
    _add_arguments(parser, subcommand)


def _add_arguments(parser: ArgumentParser, subcommand: Subcommand) -> None:
    subcommand.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.set_defaults(subcommand=subcommand)
