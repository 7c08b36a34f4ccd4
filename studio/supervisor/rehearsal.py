"""Test whether an account can run web and workers: `python -m studio.supervisor.rehearsal`.

It loads everything that they load, waits until its standard input ends, which means that the database is up, and
connects to it. If it fails, its last line says why.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from engine.configuration import setting
from studio.environment.folder import find_modules_of_folder
from studio.machine.account import Account
from studio.machine.mortal import dies_with_parent
from studio.supervisor.programs import PYTHON

PATIENCE = 60.0


class Rehearsal:
    """A test that runs while the database starts."""

    def __init__(self, account: Account, variables: Mapping[str, str]) -> None:
        self._account = account
        self._failure = ""
        self._process: subprocess.Popen[str] | None = None
        try:
            self._process = subprocess.Popen(
                [*PYTHON, "-m", __name__],
                env={**variables, **account.variables()},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
                preexec_fn=dies_with_parent(signal.SIGKILL),
                **account.arguments(),
            )
        except OSError as error:
            self._failure = f"{error.strerror}: {error.filename}"

    def failure(self, database_user: str) -> str:
        """Return why the account cannot run them; empty if it can."""
        if self._process is None:
            return self._failure
        try:
            _, said = self._process.communicate(database_user, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return f"it was not ready within {PATIENCE:g} s"
        finally:
            self.end()
        lines = said.strip().splitlines() or [f"exit code {self._process.returncode}"]
        return "" if self._process.returncode == 0 else lines[-1]

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def main() -> None:
    find_modules_of_folder()
    import django

    from studio.environment.starting import reason

    try:
        django.setup()
    except Exception as error:  # noqa: BLE001 - whatever the apps raise where they cannot read
        sys.exit((reason(error) or f"{type(error).__name__}: {error}").splitlines()[0])
    import daphne.server  # noqa: F401 - what the web process adds
    from django.conf import settings
    from django.db import connection

    _require_access(setting("HOME"), os.R_OK | os.W_OK | os.X_OK)
    for folder in ("engine", "studio", "templates", "static"):
        for directory, folders, files in os.walk(settings.BASE_DIR / folder):
            for name in (*folders, *files):
                _require_access(Path(directory, name), os.R_OK)
    wanted = sys.stdin.read()
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        (user,) = cursor.fetchone()
    if user != wanted:
        sys.exit(f"the database takes it for {user}, and root for {wanted}")


def _require_access(path: str | Path, mode: int) -> None:
    if not os.access(path, mode):
        sys.exit(f"it may not use {path}")


if __name__ == "__main__":
    main()
