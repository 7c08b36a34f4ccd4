"""The programs that the supervisor runs: started, read from, restarted when they end, stopped.

Their commands are the same as in production.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from studio.environment import Environment, Role
from studio.machine.account import Account
from studio.machine.mortal import dies_with_parent

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
# A program that cannot run ends sooner. After this long, its next failure is a new one, and a longer pause would only
# delay its work.
SETTLED_AFTER = 10.0

PROJECT = Path(__file__).resolve().parent.parent.parent

# daphne has one limit for what a socket receives and sends. Pages send almost nothing (the consumer closes after one
# kilobyte) but receive many rendered steps.
MAX_SOCKET_MESSAGE = 1024 * 1024


@dataclass
class Child:
    """A program and, while it runs, its process.

    `grace` is how many seconds it may take to stop; `account` runs it, if not ours; `inherited` are our descriptors
    that it uses.
    """

    name: str
    command: list[str]
    environment: Mapping[str, str]
    grace: float
    account: Account | None = None
    inherited: tuple[int, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    start_again_at: float = 0.0
    pause: float = FIRST_PAUSE
    unfinished_line: bytes = field(default=b"", repr=False)

    def start(self, now: float) -> None:
        """Start the program in its own session, so that Ctrl-C reaches only the supervisor."""
        self.process = subprocess.Popen(
            self.command,
            env={**self.environment, **(self.account.variables() if self.account else {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=self.inherited,
            preexec_fn=dies_with_parent(signal.SIGKILL),
            **(self.account.arguments() if self.account else {}),
        )
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)
        self.started_at = now

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def ended(self, now: float) -> str:
        """Record that the program ended, plan its next start, and return how it ended."""
        assert self.process is not None
        if now - self.started_at >= SETTLED_AFTER:
            self.pause = FIRST_PAUSE
        self.start_again_at = now + self.pause
        how = _how_it_ended(self.process.returncode)
        text = f"{self.name} ended ({how}); starting it again in {self.pause:g} s"
        self.pause = min(self.pause * 2, LONGEST_PAUSE)
        self._kill_group()
        self._close()
        self.process = None
        return text

    def terminate(self) -> None:
        if self.process is not None and self.is_running:
            self.process.terminate()

    def leave(self) -> None:
        """Let a cluster end when its bodies have."""
        if self.process is not None and self.is_running:
            self.process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        """Kill the program and everything that it started."""
        if self.process is None:
            return
        self._kill_group()
        self.process.wait()
        self._close()
        self.process = None

    def read_lines(self) -> list[str]:
        """Return the lines that the program wrote since the last call."""
        if self.process is None or self.process.stdout is None:
            return []
        while True:
            try:
                chunk = os.read(self.process.stdout.fileno(), 65536)
            except BlockingIOError:
                break
            if not chunk:
                break
            self.unfinished_line += chunk
        *lines, self.unfinished_line = self.unfinished_line.split(b"\n")
        return [line.decode(errors="replace").rstrip("\r") for line in lines]

    def _kill_group(self) -> None:
        assert self.process is not None
        # The process group exists as long as any of its processes runs.
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def _close(self) -> None:
        if self.process is not None and self.process.stdout is not None:
            self.process.stdout.close()
        self.unfinished_line = b""


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def web(environment: Environment, listener: int | None = None) -> Child:
    """Return the web process. It listens by itself, or uses the descriptor of a listening socket."""
    command = [sys.executable, "-m", "daphne", "-v", "0", "--no-server-name"]
    command += (
        ["-b", environment.host, "-p", str(environment.port)] if listener is None else ["--fd", str(listener)]
    )
    command += ["--http-timeout", "60", "--application-close-timeout", "5"]
    command += ["--websocket-max-message-size", str(MAX_SOCKET_MESSAGE)]
    command += ["--websocket-max-frame-size", str(MAX_SOCKET_MESSAGE)]
    command += ["studio.asgi:application"]
    inherited = () if listener is None else (listener,)
    return Child("web", command, variables(Role.WEB), grace=5, inherited=inherited)


def cluster(environment: Environment) -> Child:
    """Return the cluster. When it stops, bodies get 10 s; the rest is for releasing leases."""
    command = [sys.executable, str(PROJECT / "manage.py"), "workers"]
    return Child("workers", command, variables(Role.CLUSTER), grace=15)


def variables(role: Role) -> dict[str, str]:
    """Return the environment of a program."""
    path = os.pathsep.join([str(PROJECT), *filter(None, [os.environ.get("PYTHONPATH")])])
    # The first password is for the supervisor only.
    kept = {name: value for name, value in os.environ.items() if name != "REPRISE_ADMIN_PASSWORD"}
    # The supervisor itself reports when everything is up.
    kept |= {"REPRISE_SUPERVISED": "1"}
    return kept | {"REPRISE_ROLE": role.value, "PYTHONUNBUFFERED": "1", "PYTHONPATH": path}
