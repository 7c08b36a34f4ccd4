"""Type checkers read the annotations of what was installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.package.environment import Installed

pytestmark = pytest.mark.second_tier

WORKFLOW = """
from engine import WorkflowStep, workflow

def charge(number: str, cents: int) -> str: ...

@workflow
async def pay(step: WorkflowStep, number: str) -> str:
    return await step.do("charge", charge, number, {cents})
"""


def mypy(folder: Path, installed: Installed, code: str) -> str:
    """Check code as strictly as it gets, with the packages of that environment; return the errors."""
    (folder / "mine.py").write_text(code)
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-m", "mypy", "--strict", "--disable-error-code", "empty-body"),
            *("--python-executable", installed.python, "--no-error-summary", "mine.py"),
        ],
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stderr == ""
    return done.stdout


def test_a_wrong_argument_is_refused_and_a_right_one_is_not(tmp_path: Path, installed: Installed) -> None:
    wrong = mypy(tmp_path, installed, WORKFLOW.format(cents='"990"'))
    assert 'mine.py:8: error: Argument 2 to "do"' in wrong
    assert "import-untyped" not in wrong
    assert mypy(tmp_path, installed, WORKFLOW.format(cents=990)) == ""


def test_the_settings_have_types_too(tmp_path: Path, installed: Installed) -> None:
    assert mypy(tmp_path, installed, "from studio.settings import *\nHOME: str = BASE_DIR\n") == (
        'mine.py:2: error: Incompatible types in assignment (expression has type "Path", variable has type "str")  '
        "[assignment]\n"
    )
