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
from tests.live import PROJECT

# As pip writes it, with what an environment without the package lacks.
REPRISE = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(PROJECT)!r})
from studio.command.main import main
main()
"""

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
def environment(office: Path) -> dict[str, str]:
    """What a shell has after the page's section on installing."""
    programs = office.parent / "bin"
    programs.mkdir()
    written = {"reprise": REPRISE} | ({} if shutil.which("curl") else {"curl": CURL})
    for name, text in written.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    path = [programs, Path(sys.executable).parent, require_programs(), os.environ["PATH"]]
    return {
        "PATH": os.pathsep.join(map(str, path)),
        "HOME": str(office.parent),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(PROJECT),
        "REPRISE_HOME": str(
            office / ".reprise"
        ),  # the default of an installed package; pytest's is the checkout's
        "PYTEST_PLUGINS": "engine.testing.plugin,studio.testing",  # entry points of the package
        "PYTEST_ADDOPTS": "-p no:asyncio",  # which readers do not have
    }


@pytest.fixture
def production_url(postgresql: EmbeddedServer) -> Iterator[str]:
    """The database that the page puts into production, empty."""
    with psycopg.connect(postgresql.dsn("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE office")
        try:
            yield f"postgresql://reprise@/office?host={socket_dir(postgresql.home)}"
        finally:
            connection.execute("DROP DATABASE office WITH (FORCE)")
