"""The rows of workflows on Home are rendered again when they change, and only then."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from engine import WorkflowStep, pauses, workflow, workflows
from engine.models import WorkflowCountDelta
from studio.home import flow_rows
from tests.studio import factories

pytestmark = pytest.mark.usefixtures("engine_db")


@pytest.fixture(autouse=True)
def no_other_workflow(own_registry: None) -> None:
    """Home has room for a few rows: those that other tests have declared would take it."""
    workflows._workflows.clear()


def row(client: Client, name: str = "pay") -> str:
    found = re.search(rf'<tr id="w-{name}">.*?</tr>', client.get("/").content.decode(), re.DOTALL)
    assert found is not None
    return found[0]


def happened(what: str, amount: int, bucket: int = -1, hours: int = 0) -> None:
    at = factories.ago(hours=hours).replace(second=0, microsecond=0)
    WorkflowCountDelta.objects.create(workflow="pay", at=at, what=what, bucket=bucket, amount=amount)


CHANGES: dict[str, Callable[[], object]] = {
    "a start": lambda: happened("started", 1),
    "an end": lambda: happened("complete", 1, 42),
    "a failure": lambda: happened("errored", 1, 42),
    "longer runs": lambda: happened("complete", 500, 70),
    "an earlier hour": lambda: happened("complete", 1, 42, hours=3),
    "an open instance": lambda: factories.instance("running", workflow="pay"),
    "another status": lambda: factories.instance("paused", workflow="pay"),
    "a request": lambda: factories.request(factories.instance("waiting", workflow="pay")),
    "a pause": lambda: pauses.pause("pay", by="zoe"),
    "a worker": lambda: factories.worker(workflows=["pay"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_row_shows_each_change(operator: Client, change: str) -> None:
    @workflow(name="pay")
    async def pay(step: WorkflowStep) -> None: ...

    factories.instance("complete", workflow="pay")
    before = row(operator)
    assert row(operator) == before
    CHANGES[change]()
    after = row(operator)
    flow_rows._rendered.cache_clear()
    assert before != after == row(operator)


def test_a_row_that_is_as_it_was_is_not_rendered_again(operator: Client) -> None:
    factories.instance("complete", workflow="pay")
    row(operator)
    rendered = flow_rows._rendered.cache_info().misses
    factories.instance("running", workflow="call")
    assert "running" in row(operator, "call")
    assert flow_rows._rendered.cache_info().misses == rendered + 1
