"""The real thing, started as people start it: `manage.py studio` in a process of its own."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from psycopg.conninfo import make_conninfo

from studio.embedded import DATABASE, USER, socket_dir
from studio.machine.account import Account
from studio.machine.mortal import dies_with_parent
from tests.processes import MARK, wait_until_none

PROJECT = Path(__file__).resolve().parent.parent
PASSWORD = "correct-horse-battery-staple"
READY = "Reprise is ready"


class LiveStack:
    """A supervisor with all that it starts; its output goes to a file, every process carries a mark."""

    def __init__(self, home: Path, **variables: str) -> None:
        self.run = secrets.token_hex(8)
        self.home = home
        self.python = sys.executable
        self.project = PROJECT
        self.folder: Path | None = None
        self.command: list[str] | None = None
        self.run_by: Account | None = None
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.account = ("admin", PASSWORD)
        self.log = home / "output.log"
        self.variables = _clean_environment() | {
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "REPRISE_HOME": str(home),
            "REPRISE_APPS": "tests.sample",
            "REPRISE_RELOAD": "0",
            "REPRISE_ADMIN_PASSWORD": PASSWORD,
            "PYTHONPATH": str(PROJECT),
            MARK: self.run,
            **variables,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, timeout: float = 120) -> "LiveStack":
        self.launch()
        self.wait_for_output(READY, timeout)
        return self

    def launch(self) -> None:
        """Start the supervisor without waiting for anything."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [self.python, *(self.command or [str(self.project / "manage.py"), "studio"])],
                cwd=self.folder or self.project,
                env=self.variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # The stack ends with a killed test run.
                preexec_fn=dies_with_parent(signal.SIGTERM),
                **(self.run_by.arguments() if self.run_by else {}),
            )

    def output(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def wait_for_output(self, text: str, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while text not in self.output():
            assert self.process is not None
            if self.process.poll() is not None:
                raise AssertionError(f"The supervisor ended with {self.process.returncode}:\n{self.output()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"No {text!r} within {timeout} s:\n{self.output()}")
            time.sleep(0.05)

    def stop(self, sign: signal.Signals = signal.SIGINT, timeout: float = 60) -> int:
        """Send `sign` to the supervisor, wait for its end, and fail if any process of it is left."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(sign)
        code = self.process.wait(timeout)
        left = self.left()
        assert left == {}, f"{left}\n{self.output()}"
        return code

    def left(self) -> dict[int, str]:
        """Return the processes that do not end."""
        return wait_until_none(self.run, timeout=30, home=self.home)

    def dsn(self) -> str:
        """Where tests reach the stack's database without Django."""
        return make_conninfo(host=str(socket_dir(self.home)), user=USER, dbname=DATABASE)

    def django(self, code: str, timeout: float = 60) -> str:
        """Run code in a Django process on the stack's database; return what it prints."""
        done = subprocess.run(
            [sys.executable, str(PROJECT / "manage.py"), "shell", "--no-imports", "-c", code],
            cwd=PROJECT,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def status_of(page: str | urllib.request.Request) -> int:
    """Ask for a page; return its status, or 0 without an answer."""
    try:
        with urllib.request.urlopen(page, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _clean_environment() -> dict[str, str]:
    """What a shell gives, without what the test run has set for itself."""
    kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER")
    return {name: os.environ[name] for name in kept if name in os.environ}
