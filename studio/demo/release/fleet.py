"""The servers of an instance: start them, find them again, stop them.

A server is known by its directory alone, REPRISE_HOME/demo/fleets/INSTANCE/server-N, so that a worker finds what
another one started. Everything here may be done twice.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from django.conf import settings

import studio
from studio.demo.finished import finished
from studio.demo.release.contact import Address, ServerTrouble, address, ask, is_running
from studio.demo.release.server import is_alive

IDLE_SECONDS = 15 * 60
START_TIMEOUT = 15.0
STOP_TIMEOUT = 3.0


def fleets() -> Path:
    return Path(settings.REPRISE_HOME) / "demo" / "fleets"


def home(instance_id: str, server: str) -> Path:
    """Return a server's own directory, made if it is not there yet."""
    directory = fleets() / instance_id / server
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def start(directory: Path) -> Address:
    """Start the server of a directory, or find it running; replace one that does not answer."""
    # Started as a module of ours, and with nothing of our environment: it holds secrets.
    root = Path(studio.__file__).parent.parent
    environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(root)}
    command = [sys.executable, "-m", "studio.demo.release.server", str(directory), str(IDLE_SECONDS)]
    command.append(str(_supervisor()))
    with (directory / "server.log").open("ab") as log:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            timeout=START_TIMEOUT,
            env=environment,
            start_new_session=True,
            check=False,
        )
    if done.returncode != 0:
        raise ServerTrouble(f"The server did not start. Its log ends: {_log_end(directory)}")
    try:
        ask(directory, "/health")
    except ServerTrouble:
        stop(directory)
        raise
    return address(directory)


def stop(directory: Path) -> None:
    """Stop the server of a directory: ask it, then tell it, then kill it."""
    with suppress(ServerTrouble):
        ask(directory, "/stop", method="POST")
    for sign in (None, signal.SIGTERM, signal.SIGKILL):
        if sign is not None:
            _signal(directory, sign)
        if _comes_true(lambda: not is_running(directory)):
            return
    raise ServerTrouble(f"{directory.name} did not stop.")


def disband(instance_id: str) -> list[str]:
    """Stop every server of an instance and delete their directories; return their names."""
    servers = sorted(path for path in (fleets() / instance_id).glob("server-*") if path.is_dir())
    for directory in servers:
        stop(directory)
    shutil.rmtree(fleets() / instance_id, ignore_errors=True)
    return [directory.name for directory in servers]


def disband_left_behind(workflow: str) -> list[str]:
    """Disband the fleets of instances that have ended without doing so: they were terminated."""
    known = [entry.name for entry in fleets().iterdir()] if fleets().is_dir() else []
    ended = sorted(finished(workflow, known))
    for instance_id in ended:
        disband(instance_id)
    return ended


def _supervisor() -> int:
    """Return the process id of the supervisor that started us, with which the servers are to end; 0 without one."""
    try:
        match = re.match(r"process (\d+),", (Path(settings.REPRISE_HOME) / "studio.lock").read_text())
    except FileNotFoundError:
        return 0
    return int(match[1]) if match and is_alive(int(match[1])) else 0


def _signal(directory: Path, sign: signal.Signals) -> None:
    # The lock is held, and only who holds it writes into it: this is the server's own id, and nobody else's.
    with suppress(OSError, ValueError):
        pid = int((directory / "lock").read_text())
        if is_running(directory):
            os.kill(pid, sign)


def _comes_true(condition: Callable[[], bool]) -> bool:
    ends_at = time.monotonic() + STOP_TIMEOUT
    while not condition():
        if time.monotonic() > ends_at:
            return False
        time.sleep(0.02)
    return True


def _log_end(directory: Path) -> str:
    return (directory / "server.log").read_text(errors="replace")[-500:].strip()
