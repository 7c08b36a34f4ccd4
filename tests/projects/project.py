"""A Django project of somebody else's: made by `startproject` and by what the README says, and then run."""

from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg

from studio.embedded import EmbeddedServer, socket_dir
from studio.machine.mortal import dies_with_parent
from studio.supervisor.address import answers
from tests.live import PROJECT, free_port
from tests.processes import MARK, wait_until_none

SECTION = "## Add Reprise to an existing Django project"
PATIENCE = 60.0


class Project:
    """A folder with `manage.py` and the package `shop`, and a database of its own."""

    def __init__(self, directory: Path, database: Mapping[str, str]) -> None:
        self.directory = directory
        self.database = database
        self.run = secrets.token_hex(8)
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.environment = kept | {"PYTHONPATH": f"{directory}:{PROJECT}", MARK: self.run}
        self._run("-m", "django", "startproject", "shop", ".")
        place = {"ENGINE": "django.db.backends.postgresql", **database}
        self.append("shop/settings.py", f"\nDATABASES = {{'default': {place!r}}}\n")

    def follow_readme(self, prefix: str = "ops/") -> Project:
        """Add the README's lines at the ends of the files that they name."""
        settings, urls = readme_lines()
        self.append("shop/settings.py", settings)
        self.append("shop/urls.py", urls.replace('"ops/"', f'"{prefix}"'))
        return self

    def append(self, file: str, *parts: str) -> None:
        with (self.directory / file).open("a") as text:
            text.writelines(parts)

    def write(self, file: str, text: str) -> None:
        (self.directory / file).parent.mkdir(parents=True, exist_ok=True)
        (self.directory / file).write_text(text)

    def app(self, name: str, **modules: str) -> None:
        """Add an app to the project: its modules by name, and its line in INSTALLED_APPS."""
        for module, text in {"__init__": "", **modules}.items():
            self.write(f"{name}/{module}.py", text)
        self.append("shop/settings.py", f'INSTALLED_APPS += ["{name}"]\n')

    def manage(self, *arguments: str, code: int = 0) -> str:
        """Run a command that ends with `code`; return what it writes."""
        return self._run("manage.py", *arguments, code=code)

    def shell(self, program: str) -> str:
        """Run code in the project; return what it prints."""
        return self._run("manage.py", "shell", "--no-imports", "-c", program)

    def query(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(**self._address()) as connection:
            return connection.execute(statement.encode()).fetchall()

    def wait_for(self, statement: str, rows: list[tuple[object, ...]]) -> None:
        """Wait until a query returns these rows."""
        deadline = time.monotonic() + PATIENCE
        while (found := self.query(statement)) != rows:
            assert time.monotonic() < deadline, f"{found}\n{self.logs()}"
            time.sleep(0.1)

    @contextmanager
    def running(self, *arguments: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a Python program until the block ends, then stop it as systemd does."""
        with (self.directory / "log.txt").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self.directory,
                env=self.environment | variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=dies_with_parent(signal.SIGTERM),
            )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)

    @contextmanager
    def serving(self, *arguments: str, **variables: str) -> Iterator[str]:
        """Run a web server, by default `runserver`, until the block ends. Yield its address without a slash.

        In its arguments, `PORT` stands for the port.
        """
        port = free_port()
        given = arguments or ("manage.py", "runserver", "--noreload", "--verbosity", "0", "PORT")
        with self.running(*(one.replace("PORT", str(port)) for one in given), **variables) as process:
            deadline = time.monotonic() + PATIENCE
            while not answers("127.0.0.1", port):
                assert process.poll() is None, self.logs()
                assert time.monotonic() < deadline, self.logs()
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"

    @contextmanager
    def working(self, **variables: str) -> Iterator[None]:
        """Run the README's command for workers until the block ends."""
        with self.running("manage.py", readme_command(), **variables):
            yield

    def logs(self) -> str:
        file = self.directory / "log.txt"
        return file.read_text(errors="replace") if file.exists() else ""

    def left(self) -> dict[int, str]:
        """Return the processes that do not end."""
        return wait_until_none(self.run, timeout=30)

    def _run(self, *arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def _address(self) -> dict[str, str]:
        return {"host": self.database["HOST"], "dbname": self.database["NAME"], "user": self.database["USER"]}


@contextmanager
def new_project(directory: Path, postgresql: EmbeddedServer) -> Iterator[Project]:
    """Make a project with an empty database, which is dropped with the block's end."""
    name = f"project_{secrets.token_hex(4)}"
    with psycopg.connect(postgresql.dsn("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        database = {"HOST": str(socket_dir(postgresql.home)), "NAME": name, "USER": "reprise"}
        try:
            project = Project(directory, database)
            yield project
            assert project.left() == {}
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def readme_lines() -> tuple[str, str]:
    """Return what the README adds to settings.py and to urls.py."""
    found = re.search(r"```python\n# settings\.py\n(.*?)# urls\.py\n(.*?)```", _section(), re.DOTALL)
    assert found is not None
    return found[1], found[2]


def readme_command() -> str:
    """Return the README's command that starts workers."""
    found = re.search(r"and\s+`manage\.py (\w+)`", _section())
    assert found is not None
    return found[1]


def _section() -> str:
    return (PROJECT / "README.md").read_text().split(SECTION)[1].split("\n## ")[0]
