"""What the reader of the tutorial has: a folder, the programs of an environment, and a server for production."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from studio.embedded import EmbeddedServer, socket_dir
from studio.embedded.place import require_programs
from tests.conftest import home_directory
from tests.package.conftest import installed, installed_with_pytest, wheel
from tests.package.environment import Installed

__all__ = ["installed", "installed_with_pytest", "wheel"]

# For a machine without it. The page calls it as `curl -s URL`.
CURL = f"""#!{sys.executable}
import sys, urllib.request
sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[2], timeout=60).read())
"""


@pytest.fixture
def office() -> Iterator[Path]:
    """An empty folder, in which the account of the database may be, too."""
    with home_directory() as directory:
        folder = directory / "office"
        folder.mkdir()
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def environment(office: Path, installed_with_pytest: Installed) -> dict[str, str]:
    """What a shell has after the page's section on installing."""
    programs = office.parent / "bin"
    programs.mkdir()
    if not shutil.which("curl"):
        (programs / "curl").write_text(CURL)
        (programs / "curl").chmod(0o755)
    # pg_dump of the version that the server has; readers have that of their own server.
    path = [installed_with_pytest.programs, programs, require_programs(), os.environ["PATH"]]
    return {"PATH": os.pathsep.join(map(str, path)), "HOME": str(office.parent), "LANG": "C.UTF-8"}


@pytest.fixture
def production_url(postgresql: EmbeddedServer) -> Iterator[str]:
    """The database that the page puts into production, empty."""
    with psycopg.connect(postgresql.dsn("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE office")
        try:
            yield f"postgresql://reprise@/office?host={socket_dir(postgresql.home)}"
        finally:
            connection.execute("DROP DATABASE office WITH (FORCE)")
