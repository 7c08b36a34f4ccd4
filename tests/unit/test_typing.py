"""Type checkers know what a defined step takes and returns."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_mypy_refuses_wrong_arguments_of_defined_steps() -> None:
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(HERE / "typed_steps.py")]
    told = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True, check=False)
    assert (told.stdout, told.stderr, told.returncode) == ("", "", 0)
