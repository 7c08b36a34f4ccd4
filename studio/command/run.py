"""`reprise run`: what `make run` does in a checkout."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from studio.embedded import EmbeddedError
from studio.embedded.place import require_programs
from studio.environment import SettingError, app_names
from studio.environment.folder import OWN_FILE, module_names
from studio.environment.parsing import flag
from studio.environment.starting import SETTINGS


def run(arguments: Sequence[str]) -> None:
    """Start everything, and stop it on Ctrl-C. If that is impossible, exit with a sentence; nothing is written then."""
    if make_parser().parse_args(arguments).demo:
        os.environ["REPRISE_DEMO"] = "1"
    try:
        _require_workflows()
        if not os.environ.get("DATABASE_URL"):
            require_programs()
    except (SettingError, EmbeddedError) as error:
        sys.exit(f"Reprise cannot start. {error}")
    from django.core.management import execute_from_command_line

    execute_from_command_line(["reprise", "studio"])


def make_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="reprise run",
        description="Start the database (unless DATABASE_URL is set), the web process and the workers; Ctrl-C stops "
        f"them all. Runs the workflows of {OWN_FILE} in this folder, or those of the Django apps in REPRISE_APPS. "
        "Data is stored in .reprise/. The settings are environment variables, such as PORT=8001.",
        allow_abbrev=False,
    )
    parser.add_argument("--demo", action="store_true", help="add the demo workflows")
    return parser


def _require_workflows() -> None:
    """Raise SettingError if there is nothing to run; settings of one's own may name apps in another way."""
    has_own_settings = os.environ[SETTINGS] != "studio.settings"
    has_code = app_names(os.environ) or module_names(os.environ, Path.cwd())
    if not (has_own_settings or has_code or flag(os.environ, "REPRISE_DEMO")):
        raise SettingError(
            f"There are no workflows: {Path.cwd()} has no {OWN_FILE}, and REPRISE_APPS names no app. `reprise init` "
            "writes a first workflow; `reprise run --demo` starts with the demos."
        )
