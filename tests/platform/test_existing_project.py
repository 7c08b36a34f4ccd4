"""What the README says about an existing Django project, applied to a new one."""

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from studio.embedded import EmbeddedServer, socket_dir
from studio.supervisor.address import answers
from tests.live import PROJECT, free_port

pytestmark = [pytest.mark.process, pytest.mark.second_tier]


class Project:
    """A project as `startproject` makes it, with the README's lines at the ends of its files."""

    def __init__(self, directory: Path, postgresql: EmbeddedServer) -> None:
        self.directory = directory
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self.environment = kept | {"PYTHONPATH": f"{directory}:{PROJECT}"}
        self.manage("startproject", "shop", ".", program=["-m", "django"])
        settings, urls = _readme_lines()
        database = {"HOST": str(socket_dir(postgresql.home)), "NAME": "shop", "USER": "reprise"}
        self._append(
            "settings.py",
            f"DATABASES = {{'default': {{'ENGINE': 'django.db.backends.postgresql'}} | {database!r}}}\n",
            settings,
        )
        self._append("urls.py", "from django.urls import include\n", urls)

    def manage(self, *arguments: str, program: list[str] | None = None) -> str:
        done = subprocess.run(
            [sys.executable, *(program or ["manage.py"]), *arguments],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def _append(self, name: str, *parts: str) -> None:
        with (self.directory / "shop" / name).open("a") as file:
            file.writelines(parts)


def _readme_lines() -> tuple[str, str]:
    text = (PROJECT / "README.md").read_text().split("## Add Reprise to an existing Django project")[1]
    found = re.search(r"```python\n# settings\.py\n(.*?)# urls\.py\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1], found[2]


@pytest.fixture
def project(tmp_path: Path, postgresql: EmbeddedServer) -> Iterator[Project]:
    with psycopg.connect(postgresql.dsn("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE shop")
        yield Project(tmp_path, postgresql)
        connection.execute("DROP DATABASE shop WITH (FORCE)")


def test_the_readmes_lines_make_the_studio_part_of_a_project(project: Project) -> None:
    assert "engine.W015" in project.manage("check")  # the tables, and nothing else
    project.manage("migrate", "-v", "0")
    assert project.manage("check") == "System check identified no issues (0 silenced).\n"
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "manage.py", "runserver", "--noreload", "--verbosity", "0", str(port)],
        cwd=project.directory,
        env=project.environment,
    )
    try:
        deadline = time.monotonic() + 60
        while not answers("127.0.0.1", port):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ops/workflows/", timeout=10) as response:
            assert response.url == f"http://127.0.0.1:{port}/ops/sign-in/?next=/ops/workflows/"
            page = response.read().decode()
        # Its own server also enforces the Studio's limits: an anonymous client may not send more than 64 KiB.
        with pytest.raises(urllib.error.HTTPError, match="413"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/ops/sign-in/", data=b"x" * 70_000, timeout=10)
        style = re.search(r'href="(/static/[^"]+\.css)"', page)
        assert style is not None
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{style[1]}", timeout=10) as response:
            assert response.status == 200
    finally:
        server.kill()
        server.wait()
