"""What the lints say about a project: about workflows that nothing starts, in a command, as system checks."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core import checks
from django.core.management import CommandError, call_command

from engine import workflows
from engine.declare.registry import Workflow
from engine.lints import findings, project
from engine.lints.checks import check_workflows
from engine.lints.project import uses_of
from engine.lints.source import Source

SHOP = """\
import time
from engine import workflow

@workflow(timeout="1 day")
async def ship_order(step, params: str) -> None:
    time.time()
    await step.do("pack", print)
    await step.do("pack", print)

@workflow
async def hold_order(step) -> None:
    await step.listen("go on")
"""

WRAPPED = """\
import functools, time
from engine import workflow

def timed(handler):
    @functools.wraps(handler)
    async def timed_handler(step):
        return await handler(step)

    return timed_handler

@workflow
@timed
async def wrapped(step) -> None:
    time.time()
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the files of a package; return its workflows.py."""

    def write_package(**files: str) -> Path:
        package = tmp_path / "shop"
        package.mkdir()
        for name, text in {"__init__": "", "workflows": SHOP, **files}.items():
            (package / f"{name}.py").write_text(text)
        return package / "workflows.py"

    return write_package


@pytest.fixture
def shop(write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Workflow[Any, Any]]:
    """The only workflows, in the only package of the project."""
    file = write(
        views='from engine import workflows\nworkflows["ship-oder"]\n',
        test_it='from engine import workflows\nworkflows["x"]',
    )
    monkeypatch.setattr(workflows, "_workflows", {})
    monkeypatch.setattr(project, "packages", lambda: [file.parent])
    monkeypatch.chdir(tmp_path)
    return declared_in(file)


@pytest.fixture
def write_again(shop: list[Workflow[Any, Any]], tmp_path: Path) -> Callable[[str], list[Workflow[Any, Any]]]:
    """Declare more workflows in a file of their own; return these."""

    def declare(text: str) -> list[Workflow[Any, Any]]:
        file = tmp_path / "shop" / "more.py"
        file.write_text(text)
        return [one for one in declared_in(file) if one not in shop]

    return declare


def declared_in(file: Path) -> list[Workflow[Any, Any]]:
    """Import a file, and return all workflows."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return list(workflows.values())


def unstarted_in(file: Path, name: str = "ship-order") -> list[str]:
    source = Source.of(str(file))
    assert source is not None
    handler = source.handler("ship_order", 4)
    assert handler is not None
    used = [uses_of(str(one)) for one in project.files(file.parent)]
    return [found.id for found in project.find_unstarted(name, str(file), handler, used)]


def test_a_workflow_that_nothing_starts_is_mentioned(write: Write) -> None:
    """LC-46"""
    assert unstarted_in(write(views="from shop.workflows import ship_order\n__all__ = ['ship-order']")) == [
        "I102"
    ]


@pytest.mark.parametrize(
    "views",
    [
        "from shop.workflows import ship_order\nship_order.start('x')",
        "from shop import workflows\nworkflows.ship_order.astart('x')",
        "from shop.workflows import ship_order as ship\nship.start('x')",
        "from engine import workflows\nworkflows['ship-order'].start('x')",
        "async def other(step): await step.spawn('a', 'ship-order')",
        "call_command('workflow', 'start', 'ship-order')",
    ],
)
def test_a_workflow_that_something_starts_is_not_mentioned(write: Write, views: str) -> None:
    """LC-46"""
    assert unstarted_in(write(views=views)) == []


@pytest.mark.parametrize(
    "views",
    [
        "from engine import workflows\ndef view(request, name): workflows[name].start('x')",
        "from engine import workflows as known\ndef view(request, name): known.get(name).start('x')",
        "from engine.declare.registry import workflows\nfor one in workflows.values(): one.start('x')",
        "from engine import workflows\nchoices = sorted(workflows)",
        "async def other(step, params: str): await step.run_workflow('a', params)",
        "from engine import branch\nasync def other(step, params: str): branch(params)",
    ],
)
def test_where_any_workflow_may_be_meant_none_is_mentioned(write: Write, views: str) -> None:
    """LC-46"""
    assert unstarted_in(write(views=views)) == []


def test_a_workflow_that_names_only_itself_is_mentioned(write: Write) -> None:
    file = write(workflows=SHOP.replace("@workflow(timeout=", '@workflow("ship-order", timeout='))
    assert unstarted_in(file) == ["I102"]


def test_the_project_is_its_apps_without_libraries_and_what_starts_workflows_for_people() -> None:
    assert [package.name for package in project.packages()] == ["tests"]


def test_findings_of_a_workflow_come_in_the_order_of_its_source(shop: list[Workflow[Any, Any]]) -> None:
    assert [(one.id, one.line, one.column) for one in findings(shop[0])] == [
        ("engine.I102", 4, 1),
        ("engine.E105", 6, 5),
        ("engine.W103", 8, 19),
    ]


def test_a_workflow_with_a_schedule_is_not_said_to_be_started_by_nothing(
    shop: list[Workflow[Any, Any]], write_again: Callable[[str], list[Workflow[Any, Any]]]
) -> None:
    (again,) = write_again(
        "from engine import workflow\n@workflow(schedules=['0 9 * * *'])\nasync def nightly(step): ..."
    )
    assert findings(again) == []


def test_a_handler_is_found_beneath_what_wraps_it(
    shop: list[Workflow[Any, Any]], write_again: Callable[[str], list[Workflow[Any, Any]]]
) -> None:
    (again,) = write_again(WRAPPED)
    assert [(one.id, one.line) for one in findings(again)] == [("engine.I102", 11), ("engine.E105", 14)]


def test_a_comment_in_the_head_of_a_handler_says_that_people_start_it(
    write_again: Callable[[str], list[Workflow[Any, Any]]],
) -> None:
    comment = "# reprise: allow I102 because people start it"
    head = f"@workflow\nasync def by_hand(step):  {comment}\n    pass"
    body = f"@workflow\nasync def by_nobody(step):\n    pass  {comment}"
    by_hand, by_nobody = write_again(f"from engine import workflow\n\n{head}\n\n{body}\n")
    assert findings(by_hand) == []
    assert [one.id for one in findings(by_nobody)] == ["engine.I102"]


def test_a_lint_that_the_settings_silence_is_silent_everywhere(
    shop: list[Workflow[Any, Any]], settings: Any
) -> None:
    settings.SILENCED_SYSTEM_CHECKS = ["engine.E105", "engine.I102"]
    assert [one.id for one in findings(shop[0])] == ["engine.W103"]


def test_the_command_tells_places_and_hints_and_fails_on_errors(
    shop: list[Workflow[Any, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        call_command("lintworkflows", no_color=True)
    lines = capsys.readouterr().out.splitlines()
    assert exit_.value.code == 1
    assert lines[0].startswith("shop/views.py:2:11: error engine.E101 No workflow is called")
    assert lines[1] == '    Did you mean "ship-order"?'
    assert lines[2].startswith(
        "shop/workflows.py:4:1: info engine.I102 ship-order: Nothing in the project starts"
    )
    assert lines[-1] == "2 errors, 1 warning, 3 infos in 2 workflows."


def test_the_command_looks_at_one_workflow_and_fails_at_the_level_that_is_asked_for(
    shop: list[Workflow[Any, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("lintworkflows", "hold-order", json=True)
    printed = json.loads(capsys.readouterr().out)
    assert [(one["id"], one["severity"], one["workflow"], one["file"], one["line"]) for one in printed] == [
        ("engine.I102", "info", "hold-order", "shop/workflows.py", 10),
        ("engine.I112", "info", "hold-order", "shop/workflows.py", 12),
    ]
    assert {"column", "message", "hint"} < printed[0].keys()
    call_command("lintworkflows", "hold-order", fail_level="WARNING")
    with pytest.raises(SystemExit):
        call_command("lintworkflows", "hold-order", fail_level="INFO")


def test_the_command_takes_an_app_and_refuses_what_is_neither(capsys: pytest.CaptureFixture[str]) -> None:
    """No false alarm on the workflows of the tests"""
    call_command("lintworkflows", "sample", fail_level="INFO")
    assert capsys.readouterr().out == "0 errors, 0 warnings, 0 infos in 10 workflows.\n"
    with pytest.raises(CommandError, match='No workflow or app is named "proces-order"') as error:
        call_command("lintworkflows", "proces-order")
    assert error.value.returncode == 2


def test_check_shows_errors_and_warnings_and_other_commands_show_none(
    shop: list[Workflow[Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for command in ("migrate", "runserver", "qcluster", "verify"):
        monkeypatch.setattr("sys.argv", ["manage.py", command])
        assert check_workflows() == []
    monkeypatch.setattr("sys.argv", ["manage.py", "check"])
    told = check_workflows()
    assert [(one.id, one.level) for one in told] == [
        ("engine.E101", checks.ERROR),
        ("engine.E105", checks.ERROR),
        ("engine.W103", checks.WARNING),
    ]
    assert (told[1].obj, told[1].hint) == (
        "shop/workflows.py:6:5",
        "Use `step.now()`, or call it in the body of a step.",
    )
    assert check_workflows in checks.registry.registry.registered_checks
