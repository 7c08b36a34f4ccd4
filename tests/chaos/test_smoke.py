"""A minute of load and chaos: 300 instances, a kill every two seconds, a crash of the database."""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live import PROJECT

pytestmark = [pytest.mark.process, pytest.mark.second_tier, pytest.mark.long]


def test_nothing_is_lost_or_done_twice_while_everything_is_killed(tmp_path: Path) -> None:
    seed = secrets.randbelow(10**6)
    command = [sys.executable, "-m", "tests.chaos", f"--seed={seed}", "--minutes=1", f"--into={tmp_path}"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
