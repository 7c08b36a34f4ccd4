"""The programs that the supervisor runs: started, read from, restarted when they end, stopped.

Their commands are the same as in production.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from studio.environment import Environment, Role
from studio.environment.folder import CHECKOUT, IS_CHECKOUT, VARIABLE
from studio.machine.account import Account
from studio.machine.mortal import dies_with_parent
from studio.machine.ready import VARIABLE as READY_VARIABLE

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
# A program that cannot run ends sooner. After this long, its next failure is a new one, and a longer pause would only
# delay its work.
SETTLED_AFTER = 10.0

PIPE_BYTES = 65536
# A program that writes without end must not keep the supervisor from everything else.
READS_AT_ONCE = 16

# -P: modules in the working directory must not hide others. The settings put it at the end of the path.
PYTHON = (sys.executable, "-P")

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
    ready_pipe: int | None = None
    has_told_ready: bool = False

    def start(self, now: float) -> None:
        """Start the program in its own session, so that Ctrl-C reaches only the supervisor."""
        self.has_told_ready = False
        self.ready_pipe, told = os.pipe()
        try:
            self.process = self._open(told)
        finally:
            os.close(told)
        assert self.process.stdout is not None
        for descriptor in (self.process.stdout.fileno(), self.ready_pipe):
            os.set_blocking(descriptor, False)
        self.started_at = now

    def _open(self, told: int) -> subprocess.Popen[bytes]:
        of_account = self.account.variables() if self.account else {}
        return subprocess.Popen(
            self.command,
            env={**self.environment, READY_VARIABLE: str(told), **of_account},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(*self.inherited, told),
            preexec_fn=dies_with_parent(signal.SIGKILL),
            **(self.account.arguments() if self.account else {}),
        )

    def anew(self) -> Child:
        """Return the same program, not started."""
        return Child(
            self.name,
            self.command,
            self.environment,
            self.grace,
            account=self.account,
            inherited=self.inherited,
        )

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def is_ready(self) -> bool:
        """Whether the program has told that it has loaded everything."""
        if self.ready_pipe is not None and not self.has_told_ready:
            with suppress(BlockingIOError):
                self.has_told_ready = bool(os.read(self.ready_pipe, 1))
        return self.has_told_ready

    def ended(self, now: float) -> str:
        """Record that the program ended, plan its next start, and return how it ended."""
        assert self.process is not None
        if now - self.started_at >= SETTLED_AFTER:
            self.pause = FIRST_PAUSE
        self.start_again_at = now + self.pause
        how = how_it_ended(self.process.returncode)
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
        for _ in range(READS_AT_ONCE):
            try:
                chunk = os.read(self.process.stdout.fileno(), PIPE_BYTES)
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
        if self.ready_pipe is not None:
            os.close(self.ready_pipe)
            self.ready_pipe = None
        self.unfinished_line = b""


def how_it_ended(code: int) -> str:
    """Return how a process ended, from its exit code as subprocess gives it."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def web(environment: Environment, listener: int | None = None) -> Child:
    """Return the web process. It listens by itself, or uses the descriptor of a listening socket."""
    command = [*PYTHON, "-m", "daphne", "-v", "0", "--no-server-name"]
    command += (
        ["-b", environment.host, "-p", str(environment.port)] if listener is None else ["--fd", str(listener)]
    )
    command += ["--http-timeout", "60", "--application-close-timeout", "5"]
    command += ["--websocket-max-message-size", str(MAX_SOCKET_MESSAGE)]
    command += ["--websocket-max-frame-size", str(MAX_SOCKET_MESSAGE)]
    command += ["studio.asgi:application"]
    inherited = () if listener is None else (listener,)
    return Child("web", command, variables(Role.WEB, environment), grace=5, inherited=inherited)


def cluster(environment: Environment) -> Child:
    """Return the cluster. When it stops, bodies get 10 s; the rest is for releasing leases."""
    command = [*PYTHON, "-m", "studio", "workers"]
    return Child("workers", command, variables(Role.CLUSTER, environment), grace=15)


def variables(role: Role, environment: Environment) -> dict[str, str]:
    """Return the environment of a program."""
    # An installed package is found without it.
    paths = [str(CHECKOUT) if IS_CHECKOUT else "", os.environ.get("PYTHONPATH", "")]
    # The first password is for the supervisor only.
    kept = {name: value for name, value in os.environ.items() if name != "REPRISE_ADMIN_PASSWORD"}
    # Whether workflows.py exists decides both; a program must not decide otherwise because it is gone.
    kept |= {"REPRISE_HOME": str(environment.home)}
    kept |= {VARIABLE: ",".join(environment.modules)} if environment.modules else {}
    # The supervisor itself reports when everything is up.
    kept |= {"REPRISE_SUPERVISED": "1"}
    kept |= {"REPRISE_ROLE": role.value, "PYTHONUNBUFFERED": "1"}
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
