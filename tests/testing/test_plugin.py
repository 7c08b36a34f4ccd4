"""The plugin for pytest: fixtures, which cost nothing where they are not used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine import WorkflowStep, workflow
from engine.testing import NotFinishedError, UnusedError
from engine.testing.plugin import made_tests

PROJECT = Path(__file__).parents[2]

HEAVY = """
import sys
import engine.testing.plugin
import studio.testing
print(sorted({"django", "psycopg", "pydantic", "asgiref"} & set(sys.modules)))
"""


@workflow(name="of-the-plugin")
async def one(step: WorkflowStep) -> str:
    return await step.do("charge", lambda: "real")


@pytest.fixture(autouse=True)
def _story() -> None:
    """The fixtures below ask for the database themselves."""


def test_the_fixtures_need_nothing_else(workflows_test, run_workflow) -> None:  # type: ignore[no-untyped-def]
    assert run_workflow(one).output == "real"
    test = workflows_test(one, always_replay=True)
    test.mock("charge", result="mocked")
    assert test.run().output == "mocked"


def test_what_is_not_used_fails_at_the_end(db: None) -> None:
    with pytest.raises(UnusedError, match="chrage"), made_tests() as make:  # what the fixture is made of
        make(one).mock("chrage", result="misspelt")


def test_one_that_does_not_end_is_told(run_workflow, own_registry: None) -> None:  # type: ignore[no-untyped-def]
    @workflow
    async def waits(step: WorkflowStep) -> None:
        await step.listen("news")

    with pytest.raises(NotFinishedError, match='waits for event "news"'):
        run_workflow(waits)


def test_it_works_in_a_transactional_test_too(  # type: ignore[no-untyped-def]
    transactional_db: None, workflows_test
) -> None:
    assert workflows_test(one).run().output == "real"


def test_it_imports_nothing_heavy() -> None:
    found = subprocess.run(
        [sys.executable, "-c", HEAVY], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


def test_it_is_an_entry_point() -> None:
    import tomllib

    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {
        "engine.testing.plugin": "engine.testing.plugin",
        "studio.testing": "studio.testing",
    }


def test_a_test_database_is_made_for_the_fixtures_alone(request: pytest.FixtureRequest) -> None:
    """pytest-django makes none for a test that asks for `db` only while it runs: that would be the real database."""
    names = request.session._fixturemanager.getfixtureclosure(
        parentnode=request.node, initialnames=("run_workflow",), ignore_args=()
    )[0]
    assert "db" in names
