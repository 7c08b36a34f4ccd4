"""A supervised program: started, read from, restarted when it ends, stopped."""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from studio.machine.account import Account
from studio.machine.mortal import dies_with_parent

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
# A program that cannot run ends sooner. After this long, its next failure is a new one, and a longer pause would only
# delay its work.
SETTLED_AFTER = 10.0


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
