"""`reprise workflow …` with REPRISE_URL: no project, no settings and no database are needed, in any folder."""

from __future__ import annotations

from engine.command.choice import use_elsewhere
from engine.management.commands.workflow import Command
from studio.remote.source import RemoteSource


def workflow(arguments: list[str]) -> None:
    """Ask the Studio elsewhere, and exit with the code of the command."""
    use_elsewhere(RemoteSource)
    Command().run_from_argv(arguments)
