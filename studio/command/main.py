"""Read the command line of `reprise`, and do what it says.

Its own subcommands are few. Everything else is a management command of Django: `reprise workflow list`.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from engine.version import VERSION
from studio.command.check import check
from studio.command.init import init
from studio.command.run import run
from studio.environment.folder import find_modules_of_folder
from studio.environment.starting import SETTINGS, plain_refusals

USAGE_ERROR = 2

HELP = f"""\
usage: reprise COMMAND …

  run [--demo]     start everything: database, web, workers; Ctrl-C stops it
  init [FOLDER]    write a first workflow with its test
  check            check the settings, the workflows and the database
  workflow …       start, show and control instances
  verify           check a live database against the engine's invariants
  help             list all commands, also those of Django and of your apps
  COMMAND --help   show the options of a command
  --version        show the version, {VERSION}

With REPRISE_URL and REPRISE_TOKEN, `reprise workflow` asks a Studio elsewhere, in any folder.
Use it in a folder with a workflows.py, or name your Django apps: REPRISE_APPS=shop reprise run
"""

OWN: Mapping[str, Callable[[Sequence[str]], None]] = {"run": run, "init": init, "check": check}
URL = "REPRISE_URL"


def main() -> None:
    """Run a command, and exit with its code."""
    name, arguments = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("--help", [])
    if name in ("--help", "-h"):
        sys.stdout.write(HELP)
    elif name in ("--version", "version"):
        sys.stdout.write(f"Reprise {VERSION}\n")
    elif name == "workflow" and os.environ.get(URL):
        from studio.command.elsewhere import workflow

        workflow(sys.argv)
    else:
        _prepare()
        with plain_refusals():
            OWN.get(name, _run_command_of_django)(arguments)


def _prepare() -> None:
    """Set what a command, and every program that it starts, takes from the environment."""
    os.environ.setdefault(SETTINGS, "studio.settings")
    # Also where this runs from a checkout.
    os.environ.setdefault("REPRISE_HOME", str(Path.cwd() / ".reprise"))
    find_modules_of_folder()


def _run_command_of_django(_: Sequence[str]) -> None:
    import django
    from django.core.management import execute_from_command_line, get_commands

    name = sys.argv[1]
    django.setup()
    known = [*get_commands(), "help"]
    if name not in known:
        near = difflib.get_close_matches(name, [*OWN, *known], n=1)
        advice = f"Did you mean `reprise {near[0]}`? " if near else ""
        sys.stderr.write(f'"{name}" is not a command. {advice}`reprise --help` lists the main ones.\n')
        sys.exit(USAGE_ERROR)
    execute_from_command_line(sys.argv)
