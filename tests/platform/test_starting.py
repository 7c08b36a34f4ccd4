"""If Reprise cannot start, each program says why in a sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live import PROJECT

MANAGE = str(PROJECT / "manage.py")
PROGRAMS = {
    "make run": [MANAGE, "studio"],
    "manage.py": [MANAGE, "check"],
    "workers": [MANAGE, "workers"],
    "daphne": ["-m", "daphne", "studio.asgi:application"],
}
BROKEN = {
    "missing_import/__init__.py": "import nothing_there\n",
    "wrong_models/models.py": "def x(:\n",
    "wrong_workflows/workflows.py": "from engine import workflow\n\n\n@workflow\ndef ship(step): ...\n",
    "no_config/__init__.py": "",
}

MISSING = "ModuleNotFoundError: No module named 'nothing_there' ({}/missing_import/__init__.py, line 1)"

pytestmark = pytest.mark.second_tier


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for name, text in BROKEN.items():
        path = tmp_path / name
        path.parent.mkdir()
        path.with_name("__init__.py").touch()
        path.write_text(text)
    return tmp_path


def start(program: str, directory: Path, *arguments: str, **variables: str) -> str:
    """Start it where it cannot start; return what it says, which is not a traceback."""
    done = subprocess.run(
        [sys.executable, *PROGRAMS[program], *arguments],
        cwd=directory,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), "REPRISE_HOME": str(directory / "home")}
        | variables,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    return done.stdout + done.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_app_that_nobody_can_find_is_named(program: str, directory: Path) -> None:
    said = start(program, directory, REPRISE_APPS="no_confg")
    assert said == (
        "Reprise cannot start. REPRISE_APPS names no_confg, and there is no such package in "
        f"{directory} or on PYTHONPATH. Did you mean no_config?\n"
    )


@pytest.mark.parametrize(
    ("program", "app", "why"),
    [
        *((program, "missing_import", MISSING) for program in PROGRAMS),
        ("manage.py", "wrong_models", "SyntaxError: invalid syntax ({}/wrong_models/models.py, line 1)"),
        ("manage.py", "wrong_workflows", "DeclarationError: "),
        ("manage.py", "no_config.apps.Config", "ModuleNotFoundError: No module named 'no_config.apps'"),
    ],
)
def test_an_app_that_cannot_be_loaded_is_named_with_the_place(
    program: str, directory: Path, app: str, why: str
) -> None:
    first, advice = start(program, directory, REPRISE_APPS=app).splitlines()
    assert first.startswith(
        f"Reprise cannot start. REPRISE_APPS names {app}, which cannot be loaded. {why.format(directory)}"
    )
    assert advice == "The whole traceback: python manage.py check --traceback"


def test_the_traceback_is_shown_to_who_asks_for_it(directory: Path) -> None:
    said = start("manage.py", directory, "--traceback", REPRISE_APPS="wrong_workflows")
    assert "Traceback (most recent call last)" in said


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (
            {"REPRISE_APPS": "engine"},
            "REPRISE_APPS names engine, which Reprise installs by itself. Leave it out.",
        ),
        (
            {"DJANGO_SETTINGS_MODULE": "mine"},
            "DJANGO_SETTINGS_MODULE is mine, and there is no such module in ",
        ),
        ({"PORT": "many"}, 'PORT is "many": it takes a whole number from 1 to 65535.'),
    ],
)
def test_a_wrong_variable_is_named_by_every_program(
    directory: Path, variables: dict[str, str], said: str
) -> None:
    for program in PROGRAMS:
        assert start(program, directory, **variables).startswith(f"Reprise cannot start. {said}")


def test_make_help_is_aligned() -> None:
    done = subprocess.run(["make", "help"], cwd=PROJECT, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("  make ")]
    assert len(lines) > 8
    assert {len(line) - len(line[7:].split(maxsplit=1)[1]) for line in lines} == {19}


def test_what_stays_loaded_is_left_out_of_collections(tmp_path: Path) -> None:
    """A collection of everything would keep all requests waiting."""
    script = "import gc, studio.asgi; print(gc.get_freeze_count(), len(gc.get_objects()))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PROJECT),
            "REPRISE_HOME": str(tmp_path),
            "REPRISE_ROLE": "web",
            "DATABASE_URL": "postgresql://reprise@127.0.0.1:1/reprise",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    frozen, left = map(int, done.stdout.split())
    assert frozen > 100_000, done
    assert left < frozen / 20
