"""`reprise run` in a folder notices what changes there, and keeps running whatever is wrong with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import copy_database, home_directory
from tests.live import PROJECT, LiveStack
from tests.processes import marked

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

RUN = ["-P", "-c", "from studio.command.main import main; main()", "run"]
SETTINGS = """
from studio.settings import *

INSTALLED_APPS += ["shop"]
"""
CODE = """
from engine import WorkflowStep, workflow

@workflow
async def greet(step: WorkflowStep) -> str:
    return "hello"
"""
ENDLESS = """
import time
from pathlib import Path

Path("began").touch()
time.sleep(3600)
"""
FLOOD = """
import sys

sys.stderr.write("x" * 1_000_000 + "\\n" * 100_000)
raise ValueError("y" * 10_000)
"""
ONLY_WEB_FAILS = f"""
import os

if os.environ["REPRISE_ROLE"] == "web":
    raise ValueError("not here")
{CODE}
"""
MODELS = """
from django.db import models

class Parcel(models.Model):
    number = models.TextField()
"""
MIGRATION = """
from django.db import migrations, models

class Migration(migrations.Migration):
    operations = [
        migrations.CreateModel(
            "Parcel", [("id", models.BigAutoField(primary_key=True)), ("number", models.TextField())]
        )
    ]
"""


class Folder:
    """A folder with workflows.py and settings of its own, and an app elsewhere that those install."""

    def __init__(self, directory: Path, home: Path) -> None:
        self.path, self.library = directory / "folder", directory / "library"
        self.write("workflows.py", CODE)
        self.write("mysettings.py", SETTINGS)
        self.write("../library/shop/__init__.py", "")
        self.stack = LiveStack(
            home,
            REPRISE_APPS="",
            REPRISE_RELOAD="1",
            DJANGO_SETTINGS_MODULE="mysettings",
            PYTHONPATH=f"{self.library}:{PROJECT}",
        )
        self.stack.folder, self.stack.command = self.path, RUN

    def write(self, name: str, text: str) -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def said(self) -> list[str]:
        """Return what was said about changes."""
        lines = (line.partition("│ ")[2] for line in self.stack.output().splitlines())
        return [line for line in lines if line.startswith(("Reloaded: ", "Not reloaded: ", "Not migrated: "))]

    def says_after(self, change: Callable[[], object], lines: int = 1) -> str:
        """Change something; return what is said about it."""
        before = len(self.said())
        change()
        ends_at = time.monotonic() + 60
        while len(self.said()) < before + lines:
            assert time.monotonic() < ends_at, self.stack.output()
            time.sleep(0.05)
        return "\n".join(self.said()[before:])

    def processes(self) -> set[tuple[int, str]]:
        """Return the processes of web and cluster, with the program of each, once none has come or gone for a second:
        a cluster says that it runs before all its workers do, and a trial ends after it has been reported.
        """
        found, ends_at = self._processes(), time.monotonic() + 30
        while True:
            time.sleep(1)
            earlier, found = found, self._processes()
            if found == earlier or time.monotonic() > ends_at:
                return found

    def _processes(self) -> set[tuple[int, str]]:
        found = marked(self.stack.run).items()
        return {
            (pid, name)
            for pid, command in found
            for name in ("daphne", "workers")
            if f" {name} " in f"{command} "
        }


@pytest.fixture(scope="module")
def running(migrated_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Folder]:
    with home_directory() as home:
        copy_database(migrated_home, home)
        folder = Folder(tmp_path_factory.mktemp("reload"), home)
        folder.stack.start()
        try:
            yield folder
        finally:
            folder.stack.stop()


@pytest.fixture
def folder(running: Folder) -> Iterator[Folder]:
    yield running
    file = running.path / "workflows.py"
    if not file.is_file() or file.read_text() != CODE:
        running.says_after(lambda: file.write_text(CODE))


def test_modules_and_packages_that_are_added_reload(folder: Folder) -> None:
    def add() -> None:
        folder.write("lib/__init__.py", "")
        folder.write("lib/prices.py", "")

    assert folder.says_after(add) == "Reloaded: lib/__init__.py and 1 other changed"
    assert (
        folder.says_after(lambda: folder.write("lib/prices.py", "A = 1")) == "Reloaded: lib/prices.py changed"
    )


def test_an_app_of_the_settings_reloads_wherever_it_is(folder: Folder) -> None:
    added = folder.says_after(lambda: folder.write("../library/shop/prices.py", "A = 1"))
    assert added == "Reloaded: ../library/shop/prices.py changed"


def test_an_app_that_the_settings_name_later_is_watched_from_then_on(folder: Folder) -> None:
    folder.write("../library/other/__init__.py", "")
    named = f"{SETTINGS}\nINSTALLED_APPS += ['other']"
    assert (
        folder.says_after(lambda: folder.write("mysettings.py", named)) == "Reloaded: mysettings.py changed"
    )
    changed = folder.says_after(lambda: folder.write("../library/other/x.py", ""))
    assert changed == "Reloaded: ../library/other/x.py changed"
    unknown = f"{SETTINGS}\nINSTALLED_APPS += ['othr']"
    assert folder.says_after(lambda: folder.write("mysettings.py", unknown)) == (
        "Not reloaded: mysettings.py changed. ModuleNotFoundError: No module named 'othr'. "
        "What was loaded before runs on."
    )
    folder.says_after(lambda: folder.write("mysettings.py", SETTINGS))


def test_code_that_writes_much_and_fails_is_said_in_a_line(folder: Folder) -> None:
    said = folder.says_after(lambda: folder.write("workflows.py", FLOOD))
    assert said.startswith(
        "Not reloaded: workflows.py changed. workflows.py cannot be loaded. ValueError: yyyy"
    )
    assert said.endswith("yyyy… What was loaded before runs on.")
    assert len(said) < 500


def test_code_that_loads_slowly_does_not_delay_the_next_change(folder: Folder) -> None:
    folder.write("workflows.py", ENDLESS)
    while not (folder.path / "began").exists():
        time.sleep(0.05)
    said = folder.says_after(lambda: folder.write("workflows.py", f"{CODE}\n"))
    assert said == "Reloaded: workflows.py changed"


def test_code_that_ends_the_process_is_said_to(folder: Folder) -> None:
    kill = "import os; print('bye', flush=True); os.kill(os.getpid(), 9)"
    assert folder.says_after(lambda: folder.write("workflows.py", kill)) == (
        "Not reloaded: workflows.py changed. Loading it ended the process (killed by SIGKILL). Its last line: bye. "
        "What was loaded before runs on."
    )


def test_no_workflow_left_is_a_mistake(folder: Folder) -> None:
    before = folder.processes()
    assert folder.says_after((folder.path / "workflows.py").unlink) == (
        f"Not reloaded: workflows.py changed. {folder.path}/workflows.py is missing. What was loaded before runs on."
    )
    assert folder.says_after(lambda: folder.write("workflows.py", "# soon")) == (
        "Not reloaded: workflows.py changed. No workflow is left. What was loaded before runs on."
    )
    assert {name for _, name in before & folder.processes()} == {"daphne", "workers"}
    assert folder.processes() <= before


def test_what_only_the_new_programs_cannot_load_leaves_the_old_ones(folder: Folder) -> None:
    before = folder.processes()
    said = folder.says_after(lambda: folder.write("workflows.py", ONLY_WEB_FAILS))
    assert said == (
        "Not reloaded: workflows.py changed. The new web ended (exit code 1). workflows.py cannot be loaded. "
        f"ValueError: not here ({folder.path}/workflows.py, line 5). What was loaded before runs on."
    )
    assert {name for _, name in before & folder.processes()} == {"daphne", "workers"}
    assert "starting it again" not in folder.stack.output()


def test_a_migration_that_is_not_applied_is_named(folder: Folder) -> None:
    def add() -> None:
        folder.write("../library/shop/models.py", MODELS)
        folder.write("../library/shop/migrations/__init__.py", "")
        folder.write("../library/shop/migrations/0001_parcel.py", MIGRATION)

    _, lacking = folder.says_after(add, lines=2).splitlines()
    assert lacking == "Not migrated: the database lacks shop.0001_parcel. Run `python manage.py migrate`."
