"""Programs that the demo's steps run never outlive them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from studio.demo import processes
from tests.shifts import wait_until

ENVIRONMENT = {"PATH": os.environ["PATH"]}
SHELL = Path("/bin/sh")

# Starts a program, and says so by the file that the program writes.
WORKER = """
import asyncio, sys
from pathlib import Path
from studio.demo import processes
asyncio.run(processes.run(Path("/bin/sh"), ["-c", sys.argv[1]], environment={"PATH": "/usr/bin:/bin"}))
"""

pytestmark = pytest.mark.process


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def pids(file: Path) -> list[int]:
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []


async def test_output_is_returned() -> None:
    assert await processes.run(SHELL, ["-c", "echo done"], environment=ENVIRONMENT) == "done\n"


async def test_failure_tells_the_end_of_what_was_said() -> None:
    script = "for i in $(seq 20); do echo line $i >&2; done; exit 4"
    with pytest.raises(processes.ProgramFailed) as failed:
        await processes.run(SHELL, ["-c", script], environment=ENVIRONMENT)

    assert failed.value.code == 4
    lines = [f"line {number}" for number in range(9, 21)]
    assert str(failed.value) == "\n".join(["sh ended with code 4:", *lines])


async def test_cancelling_ends_the_program_and_its_children(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    # It will not end when it is asked to, and has a child.
    script = (
        f"trap '' TERM; sleep 600 & echo $! $$ > {file}.draft; mv {file}.draft {file}; wait; wait; sleep 600"
    )
    running = asyncio.create_task(processes.run(SHELL, ["-c", script], environment=ENVIRONMENT))
    while not file.exists():
        await asyncio.sleep(0.01)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    wait_until(lambda: not any(map(is_alive, pids(file))), what="the end of both")


def test_killed_worker_takes_its_program_along(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    script = f"echo $$ > {file}.draft; mv {file}.draft {file}; exec sleep 600"
    worker = subprocess.Popen([sys.executable, "-c", WORKER, script], cwd=Path(__file__).parents[2])
    wait_until(file.exists, seconds=30)

    worker.send_signal(signal.SIGKILL)
    worker.wait()

    wait_until(lambda: not any(map(is_alive, pids(file))), what="the end of the program")
