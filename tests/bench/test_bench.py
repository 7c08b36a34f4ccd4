"""`make bench` from end to end, with so little to do that its figures say nothing."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.workloads import WORKLOADS
from tests.live import PROJECT

pytestmark = [pytest.mark.process, pytest.mark.second_tier, pytest.mark.long]

# What a run with next to nothing to do may find none of.
MAY_BE_ZERO = ("alone", "statements", "bodies run twice", "% of a core", "for each of", "late")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory for temporary files, known to every process of the bench."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def test_every_workload_is_measured_and_an_interrupted_run_says_so_and_leaves_nothing(place: Path) -> None:
    bench = subprocess.Popen(
        [sys.executable, "-m", "tests.bench", "--tiny", "--runs", "2", "--json", str(place / "figures")],
        cwd=PROJECT,
        env=os.environ | {"TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert bench.stdout is not None
    told = _until("Run 2", bench.stdout)
    bench.send_signal(signal.SIGINT)
    told += bench.communicate(timeout=60)[0]

    assert bench.returncode == 130, told
    assert "failed" not in told
    first, *_ = json.loads((place / "figures").read_text())["runs"]
    assert {one["workload"] for one in first} == {"limit", *WORKLOADS}
    for one in first:
        assert one["value"] > 0 or any(word in f"{one['what']} {one['unit']}" for word in MAY_BE_ZERO), one
        assert one["what"] in told
    assert _processes_of(place) == []
    assert [left.name for left in place.iterdir()] == ["figures"]


def _until(text: str, lines: Iterator[str]) -> str:
    told = ""
    for line in lines:
        told += line
        if text in line:
            break
    return told


def _processes_of(place: Path) -> list[str]:
    """Return the processes that were told to keep their temporary files there."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"TMPDIR={place}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found
