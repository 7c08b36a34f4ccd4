"""Programs that the demo's steps run never outlive them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from studio.demo import machine
from tests.shifts import wait_until

WORKER = """
import sys, threading
from types import SimpleNamespace
import django
django.setup()
from studio.demo import machine
machine.run(SimpleNamespace(cancelled=threading.Event()), "/bin/sh", "-c", sys.argv[1])
"""

pytestmark = pytest.mark.process


def context() -> Any:
    return SimpleNamespace(cancelled=threading.Event())


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def pids(file: Path) -> list[int]:
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []


def test_output_is_returned() -> None:
    assert machine.run(context(), "/bin/sh", "-c", "echo done") == "done\n"


def test_program_sees_only_the_environment_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "of the worker")
    assert machine.run(context(), "/bin/sh", "-c", 'echo "$SECRET" "$GIVEN"', GIVEN="this") == " this\n"


def test_failure_tells_the_end_of_what_was_said() -> None:
    script = "for i in $(seq 20); do echo line $i >&2; done; exit 4"
    with pytest.raises(machine.ProgramFailed) as failed:
        machine.run(context(), "/bin/sh", "-c", script)

    lines = [f"line {number}" for number in range(9, 21)]
    assert str(failed.value) == "\n".join(["sh ended with code 4:", *lines])


def test_cancelling_ends_the_program_and_its_children(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    # It ignores SIGTERM, and has a child.
    script = (
        f"trap '' TERM; sleep 600 & echo $! $$ > {file}.draft; mv {file}.draft {file}; wait; wait; sleep 600"
    )
    ctx, failures = context(), []

    def step() -> None:
        try:
            machine.run(ctx, "/bin/sh", "-c", script)
        except machine.ProgramFailed as failure:
            failures.append(str(failure))

    running = threading.Thread(target=step)
    running.start()
    wait_until(file.exists)

    ctx.cancelled.set()
    running.join(timeout=60)

    assert failures == ["sh ended with code -9:"]
    wait_until(lambda: not any(map(is_alive, pids(file))), what="the end of both")


def test_killed_worker_takes_its_program_along(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    script = f"echo $$ > {file}.draft; mv {file}.draft {file}; exec sleep 600"
    worker = subprocess.Popen([sys.executable, "-c", WORKER, script], cwd=Path(__file__).parents[2])
    wait_until(file.exists)

    worker.send_signal(signal.SIGKILL)
    worker.wait()

    wait_until(lambda: not any(map(is_alive, pids(file))), what="the end of the program")
