"""The measurement of a bulk retry runs, and each instance runs again once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.live import PROJECT

pytestmark = [pytest.mark.process, pytest.mark.second_tier]


def test_each_instance_is_retried_once() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.retries", "--count", "120", "--at-once", "100"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "120 done, 0 skipped, 0 failed" in done.stdout
    assert "Bodies that ran twice: 0; that did not run: 0." in done.stdout
    assert "others meanwhile: " in done.stdout
