"""The database to fill or to measure: DATABASE_URL's, or the embedded one of REPRISE_HOME."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from studio.embedded import EmbeddedServer
from tests.live import LiveStack
from tests.processes import MARK


@contextmanager
def opened() -> Iterator[LiveStack]:
    """Have the database running and migrated, and Django on it; return what other processes need.

    An embedded server is stopped at the end. What this shell has set for the Studio otherwise is left out.
    """
    url, home = os.environ.get("DATABASE_URL"), os.environ.get("REPRISE_HOME")
    if url:
        with tempfile.TemporaryDirectory(prefix="reprise-many-") as directory:
            yield _with_django(LiveStack(Path(directory), DATABASE_URL=url))
    elif home:
        place = Path(home).resolve()
        place.mkdir(mode=0o755, parents=True, exist_ok=True)  # the database's account has to enter it
        server = EmbeddedServer(place)
        server.start()
        try:
            yield _with_django(LiveStack(place), server)
        finally:
            _close_connections()
            server.stop(timeout=120)  # it writes what is only in memory
    else:
        raise SystemExit("Set REPRISE_HOME to a directory for the embedded database, or DATABASE_URL.")


def _with_django(stack: LiveStack, server: EmbeddedServer | None = None) -> LiveStack:
    stack.variables["REPRISE_APPS"] = "tests.bench"
    os.environ.pop("REPRISE_APPS", None)
    os.environ |= {name: value for name, value in stack.variables.items() if name != MARK}
    os.environ["DJANGO_SETTINGS_MODULE"] = "studio.settings"
    import django

    django.setup()
    from studio.supervisor.database import prepare

    prepare(server)
    return stack


def _close_connections() -> None:
    from django.db import connections

    connections.close_all()
