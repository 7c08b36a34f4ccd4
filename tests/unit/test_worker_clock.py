"""The clock that a worker follows the database's by."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.worker.database.clock import DatabaseClock, ticks_ns

ASLEEP = 100_000  # seconds
UNSHARE = ["unshare", "--time", "--boottime", str(ASLEEP)]
PROBE = (
    "import time; from engine.worker.database.clock import ticks_ns; print(ticks_ns() - time.monotonic_ns())"
)


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


def test_time_goes_back_where_the_databases_clock_was_set_back() -> None:
    """Otherwise it would stand still for an hour, and so would every timer that begins meanwhile."""
    clock, hour_us = DatabaseClock(), 3_600_000_000
    for database_us in (10 * hour_us, 11 * hour_us, 10 * hour_us):
        now_ns = ticks_ns()
        clock.set(database_us, sent_ns=now_ns, received_ns=now_ns)
        assert 0 <= clock.now_us() - database_us < hour_us / 60
        assert 0 <= clock.due_us() - database_us < hour_us / 60


def test_time_does_not_go_back_for_a_slow_answer() -> None:
    clock, now_ns = DatabaseClock(), ticks_ns()
    clock.set(1_000_000_000, sent_ns=now_ns, received_ns=now_ns)
    before = clock.now_us(), clock.due_us()
    clock.set(1_000_000_000 - 500_000, sent_ns=now_ns, received_ns=now_ns)
    assert (clock.now_us() >= before[0], clock.due_us() >= before[1]) == (True, True)
