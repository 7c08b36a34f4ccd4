"""The measurement of open tabs runs, sees each change in each tab, and leaves nobody behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.live import PROJECT

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

FEW = ("--tabs", "20", "--people", "2", "--rate", "10", "--seconds", "3")


def test_every_tab_shows_every_change() -> None:
    with tempfile.TemporaryDirectory(prefix="tabs-") as directory:
        home = Path(directory)
        home.chmod(0o755)
        variables = {name: value for name, value in os.environ.items() if not name.startswith("REPRISE_")}
        done = subprocess.run(
            [sys.executable, "-m", "tests.bench.tabs", *FEW],
            cwd=PROJECT,
            env=variables | {"REPRISE_HOME": str(home)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "Changes that a tab never showed: 0; tabs that were closed: 0." in done.stdout
    assert "30 changes, 20 tabs of 2 people." in done.stdout
    for topic in ("list", "home", "workflows", "workflow:nap"):
        assert re.search(rf"^ *{topic}: right after \d+\.\d\d s \(median\)", done.stdout, re.MULTILINE), topic
