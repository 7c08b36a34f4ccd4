"""What mypy and pyright, both strict, find in code that uses Reprise, and what they infer."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.second_tier

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
RIGHT, WRONG = HERE / "right.py", HERE / "wrong.py"
MARK = re.compile(r"# wrong(?: for (mypy|pyright))?$")
ERROR = re.compile(r"^(.+?\.py):(\d+): error: ", re.MULTILINE)
OPTIONS = """
[mypy]
strict = true
python_version = 3.11
plugins = mypy_django_plugin.main, pydantic.mypy
follow_imports = silent
cache_dir = {cache}

[mypy.plugins.django-stubs]
django_settings_module = studio.settings
"""


def by_mypy(directory: Path) -> set[tuple[str, int]]:
    options = directory / "mypy.ini"
    options.write_text(OPTIONS.format(cache=PROJECT / ".mypy_cache" / "types"))
    said = run("mypy", "--config-file", str(options), str(RIGHT), str(WRONG))
    return {(Path(file).name, int(line)) for file, line in ERROR.findall(said)}


def by_pyright(directory: Path) -> set[tuple[str, int]]:
    options = directory / "pyrightconfig.json"
    options.write_text(
        json.dumps(
            {
                "include": [os.path.relpath(one, directory) for one in (RIGHT, WRONG)],
                "extraPaths": [str(PROJECT)],
                "pythonVersion": "3.11",
                "typeCheckingMode": "strict",
                # Of what is wrong, pyright does not know what it would return.
                "reportUnknownVariableType": False,
                "reportUnknownMemberType": False,
                "reportUnknownArgumentType": False,
                "reportUnknownLambdaType": False,
            }
        )
    )
    said = run("basedpyright", "--project", str(options), "--pythonpath", sys.executable, "--outputjson")
    found = json.loads(said)["generalDiagnostics"]
    return {
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1)
        for one in found
        if one["severity"] == "error"
    }


def run(checker: str, *args: str) -> str:
    assert importlib.util.find_spec(checker), f"{checker} is not installed: make env-test"
    done = subprocess.run(
        [sys.executable, "-m", checker, *args],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("checker", "errors"), [("mypy", by_mypy), ("pyright", by_pyright)])
def test_exactly_the_wrong_lines_are_errors(checker, errors, tmp_path):
    marked = {
        (WRONG.name, number)
        for number, line in enumerate(WRONG.read_text().splitlines(), start=1)
        if (mark := MARK.search(line)) and mark[1] in (None, checker)
    }
    found = errors(tmp_path)
    assert (sorted(marked - found), sorted(found - marked)) == ([], [])
