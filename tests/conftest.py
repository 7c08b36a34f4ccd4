"""What every test may use: a real PostgreSQL, started once and only when a test asks for a database."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from studio.embedded import EmbeddedServer
from studio.embedded.address import socket_dir

ENOUGH_MEMORY = 2 * 1024**3


@pytest.fixture(scope="session")
def postgresql() -> Iterator[EmbeddedServer]:
    """An embedded PostgreSQL of this run, its data in memory where there is enough of it."""
    with tempfile.TemporaryDirectory(prefix="reprise-pg-", dir=_fast_directory()) as directory:
        home = Path(directory)
        # The server's account has to be able to enter it.
        home.chmod(0o755)
        server = EmbeddedServer(home)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(request: pytest.FixtureRequest) -> None:
    """Lead pytest-django to that server, unless DATABASE_URL names another."""
    if settings.ENVIRONMENT.database_url is None:
        server: EmbeddedServer = request.getfixturevalue("postgresql")
        settings.DATABASES["default"]["HOST"] = str(socket_dir(server.home))


def _fast_directory() -> str | None:
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > ENOUGH_MEMORY else None
