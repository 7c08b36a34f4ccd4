"""`reprise check`: Django's system checks, with those of the database."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence

from studio.embedded import SOCKET_NAME, EmbeddedError, socket_dir
from studio.embedded.place import require_programs
from studio.environment import Environment

LEFT_OUT = "The embedded database is not running: its checks are left out. `reprise run` starts it.\n"


def check(arguments: Sequence[str]) -> None:
    """Check everything and exit with 1 on an error. The arguments are those of Django's `check`."""
    from django.conf import settings
    from django.core.management import execute_from_command_line

    environment: Environment | None = getattr(settings, "ENVIRONMENT", None)
    database = ["--database", "default"]
    if environment is not None and environment.database_url is None:
        try:
            require_programs()
        except EmbeddedError as error:
            sys.exit(str(error))
        if not _answers(str(socket_dir(environment.home) / SOCKET_NAME)):
            sys.stderr.write(LEFT_OUT)
            database = []
    sys.argv = ["reprise", "check", *arguments, *database]
    execute_from_command_line(sys.argv)


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0
