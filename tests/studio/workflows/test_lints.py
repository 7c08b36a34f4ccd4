"""What the lints find is on the workflow's page, and counted on the list."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from engine import workflows
from engine.lints import project
from tests.studio import factories

pytestmark = pytest.mark.django_db

HANDLER = """
import time
from engine import workflow

@workflow
async def careless(step) -> None:
    {}
"""
Declare = Callable[[str], None]


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Declare the workflow `careless`, with this single statement."""
    monkeypatch.setattr(workflows, "_workflows", {})
    monkeypatch.setattr(project, "packages", list)  # ours look workflows up by any name
    monkeypatch.chdir(tmp_path)

    def make(statement: str) -> None:
        file = tmp_path / "workflows.py"
        file.write_text(HANDLER.format(statement))
        spec = importlib.util.spec_from_file_location("careless_workflows", file)
        assert spec is not None
        assert spec.loader is not None
        spec.loader.exec_module(importlib.util.module_from_spec(spec))

    return make


def test_findings_are_on_the_page_with_place_and_hint_and_counted_on_the_list(
    declare: Declare, viewer: Client
) -> None:
    declare('time.time(), "<b>", [await step.do("a", print), await step.do("a", print)]')
    page = viewer.get("/workflows/careless/").content.decode()
    assert "Findings in its code" in page
    assert "<code>time.time()</code> between steps differs on every replay" in page
    assert "Use <code>step.now()</code>, or call it in the body of a step." in page
    assert "<code>workflows.py:7</code> <code>engine.E105</code>" in page
    # The worst first, whatever its position in the code.
    assert page.index("engine.E105") < page.index("engine.W103") < page.index("engine.I102")
    table = " ".join(viewer.get("/workflows/").content.decode().split())
    assert (
        'class="small warn s-errored" href="/workflows/careless/#code"> 2 findings in its code</a>' in table
    )


def test_a_workflow_that_has_run_is_not_said_to_be_started_by_nothing(
    declare: Declare, viewer: Client
) -> None:
    declare("pass")
    assert "engine.I102" in viewer.get("/workflows/careless/").content.decode()
    assert "in its code" not in viewer.get("/workflows/").content.decode()
    factories.instance(workflow="careless")
    assert "Findings in its code" not in viewer.get("/workflows/careless/").content.decode()


def test_where_there_is_nothing_to_say_there_is_no_section(viewer: Client) -> None:
    assert "Findings in its code" not in viewer.get("/workflows/process-order/").content.decode()
    assert "in its code" not in viewer.get("/workflows/").content.decode()
