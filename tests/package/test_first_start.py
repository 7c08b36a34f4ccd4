"""What a new user does after `pip install`: in an empty folder, with nothing but what was installed."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from engine.version import VERSION
from tests.package.environment import Folder, Installed
from tests.package.forms import form_with, loaded_by
from tests.projects.visitor import Page, Visitor

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

SECONDS_TO_END = 15  # it takes one or two; bodies would get ten
WRITTEN = {"conftest.py", "test_workflows.py", "workflows.py", ".gitignore"}
STEPS = ("look-up-rate", "decide", "wait-for-the-bank", "pay")
FINE = "System check identified no issues (0 silenced).\n"
NOT_RUNNING = "The embedded database is not running: its checks are left out. `reprise run` starts it.\n"


def wait_for(visitor: Visitor, path: str, text: str) -> Page:
    """Load a page again until it has the text, also while its server is being replaced."""
    deadline = time.monotonic() + 120
    while True:
        with suppress(OSError):
            if text in (page := visitor.get(path)).text:
                return page
        assert time.monotonic() < deadline, f"no {text!r} on {path}"
        time.sleep(0.2)


def test_the_first_workflow_is_written_started_answered_and_finished(folder: Folder) -> None:
    said = folder.run("reprise", "init")
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.splitlines()[1:] == [
        "  pip install pytest pytest-django && pytest",
        "  reprise run",
    ]
    assert folder.names() == WRITTEN

    assert folder.start() == folder.url
    visitor = Visitor(folder.url)
    home = visitor.sign_in("admin", folder.password, path="/")
    assert (home.status, home.path) == (200, "/")
    files = list(loaded_by(home))
    assert len(files) > 10
    assert [visitor.get(file).status for file in files] == [200] * len(files)

    page = visitor.get("/workflows/reimburse/start/")
    form = form_with(page, "params")
    form.fields["f./employee"] = "Ada"
    started = form.send(visitor, page)
    assert (started.status, started.path.count("/reimburse/instances/")) == (200, 1)
    question = wait_for(visitor, "/approvals/", "Pay 0.9 EUR to Ada?")
    answer = form_with(question, "answer/approved")
    answer.choose("answer/approved")
    assert answer.send(visitor, question).status == 200
    finished = wait_for(visitor, started.path, "paid 0.90 EUR to Ada")
    assert [step for step in STEPS if step not in finished.text] == []

    checked = folder.run("reprise", "check")
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, FINE)
    listed = folder.run("python", "-m", "studio", "workflow", "list", "--json")
    assert [one["status"] for one in json.loads(listed.stdout)["instances"]] == ["complete"]
    assert folder.interrupt() < SECONDS_TO_END
    assert folder.names() == WRITTEN | {".reprise"}


def test_nothing_but_what_was_installed_is_used(folder: Folder, installed: Installed) -> None:
    check = [sys.executable, "-m", "pip", "--python", str(installed.python), "check"]
    assert folder.run(*check).stdout == "No broken requirements found.\n"
    found = folder.run(
        "python", "-c", "import engine, studio; print(engine.__file__); print(studio.__file__)"
    )
    assert found.stdout.splitlines() == [
        str(installed.packages / name / "__init__.py") for name in ("engine", "studio")
    ]
    assert folder.run("reprise", "--version").stdout == f"Reprise {VERSION}\n"
    assert folder.run("reprise").stdout.startswith("usage: reprise COMMAND …\n")
    assert folder.names() == set()


def test_the_test_that_was_written_passes(
    make_folder: Callable[..., Folder], installed_with_pytest: Installed
) -> None:
    folder = make_folder(installed_with_pytest)
    assert folder.run("reprise", "init").stdout.splitlines()[1:] == ["  pytest", "  reprise run"]
    done = folder.run("pytest", "-q", "-W", "error")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("3 passed in ")
    assert folder.left() == {}


def test_mistakes_in_the_code_are_one_line_each_and_what_was_loaded_runs_on(folder: Folder) -> None:
    folder.run("reprise", "init")
    folder.start()
    visitor = Visitor(folder.url)
    visitor.sign_in("admin", folder.password, path="/")
    file = folder.path / "workflows.py"
    code = file.read_text()

    for mistake, why in (
        ("def oops(:", f"SyntaxError: invalid syntax ({file}, line 1)"),
        ("import nowhere", f"ModuleNotFoundError: No module named 'nowhere' ({file}, line 1)"),
    ):
        file.write_text(f"{mistake}\n{code}")
        folder.wait_for(
            f"reprise │ Not reloaded: workflows.py changed. workflows.py cannot be loaded. {why}. "
            "What was loaded before runs on.\n"
        )
        assert visitor.get("/workflows/reimburse/").status == 200
    file.write_text(code.replace("def reimburse", "def repay"))
    folder.wait_for("reprise │ Reloaded: workflows.py changed\n")
    assert "Traceback" not in folder.said()
    wait_for(visitor, "/workflows/", "/workflows/repay/")
    folder.interrupt()


def test_the_demos_run_and_an_app_that_disappears_stops_nothing(folder: Folder) -> None:
    shop = folder.path / "shop"
    shop.mkdir()
    (shop / "__init__.py").touch()
    folder.start("--demo", REPRISE_APPS="shop")
    visitor = Visitor(folder.url)
    visitor.sign_in("admin", folder.password, path="/")
    page = visitor.get("/workflows/order/start/")
    started = form_with(page, "params").send(visitor, page)
    assert started.path.startswith("/workflows/order/instances/")
    names = ("order", "refund", "database-backup", "rolling-release")
    shown = visitor.get("/workflows/").text
    assert [name for name in names if f"/workflows/{name}/" not in shown] == []

    shop.rename(folder.path / "shed")
    folder.wait_for(
        "Not reloaded: shed/__init__.py and 1 other changed. REPRISE_APPS names shop, and there is no such package in "
        f"{folder.path} or on PYTHONPATH. What was loaded before runs on.\n"
    )
    assert visitor.get("/").status == 200
    folder.interrupt()
