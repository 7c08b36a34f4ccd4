"""The clock that a worker follows the database's by."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ASLEEP = 100_000  # seconds
UNSHARE = ["unshare", "--time", "--boottime", str(ASLEEP)]
PROBE = "import time; from engine.worker.clock import ticks_ns; print(ticks_ns() - time.monotonic_ns())"


def can_move_time() -> bool:
    return (
        bool(shutil.which("unshare"))
        and not subprocess.run([*UNSHARE, "true"], capture_output=True).returncode
    )


@pytest.mark.skipif(not can_move_time(), reason="needs the right to make a time namespace")
def test_the_time_that_the_machine_slept_counts() -> None:
    done = subprocess.run(
        [*UNSHARE, sys.executable, "-c", PROBE],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    before = time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
    assert int(done.stdout) / 1e9 == pytest.approx(before + ASLEEP, abs=60)
