"""What `manage.py workflow index` does and prints."""

from __future__ import annotations

import io
import json

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from engine import WorkflowStep, workflow
from engine.command.local import index
from engine.models.connection import parameters
from engine.steer.indexing import filling, paths
from tests.integration.orders import PLANT, declare, redeclare
from tests.integration.sessions import in_background
from tests.shifts import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_registry")]


def said(*arguments: str) -> list[str]:
    """Run the command and return its lines."""
    out = io.StringIO()
    call_command("workflow", "index", *arguments, stdout=out)
    return out.getvalue().splitlines()


def test_it_fills_the_declared_paths_and_says_how_many_instances_have_each() -> None:
    order = declare()
    order.start_many([{"params": {"customer": "a"}}] * 3)
    order.start({})
    redeclare("customer", "output.total")
    assert said() == [
        "order: output.total: 0 instances, complete",
        "order: params.customer: 3 instances, complete",
    ]
    assert said() == said()


def test_it_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "SAY_SECONDS", 0.0)
    monkeypatch.setattr(filling, "FIRST_BATCH", 2)
    monkeypatch.setattr(filling, "MOST_AT_ONCE", 2)
    order = declare("gone")
    paths.register()
    order.start_many([{"params": {"customer": "a", "gone": 1}}] * 3)
    redeclare("customer")
    assert said() == [
        "order: params.gone: 3 values removed so far",
        "order: params.gone: removed, 3 values",
        "order: 2 instances read so far",
        "order: 3 instances read so far",
        "order: params.customer: 3 instances, complete",
    ]


def test_it_says_that_it_waits_for_open_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "SAY_SECONDS", 0.0)
    declare("customer")
    with psycopg.connect(**parameters()) as other:
        other.execute(PLANT, ["a"])
        out = io.StringIO()
        answer = in_background(lambda: call_command("workflow", "index", stdout=out))
        wait_until(lambda: "Waiting for the end of 1 open transaction\n" in out.getvalue())
    assert answer() is None
    assert out.getvalue().splitlines()[-1] == "order: params.customer: 1 instance, complete"


def test_it_prints_one_document_for_programs() -> None:
    order = declare("gone")
    paths.register()
    order.start({"customer": "a", "gone": 1})
    redeclare("customer")
    assert json.loads("".join(said("--json"))) == {
        "paths": [{"workflow": "order", "path": "params.customer", "instances": 1, "is_complete": True}],
        "removed": [{"workflow": "order", "path": "params.gone", "values": 1}],
    }


def test_it_leaves_other_workflows_alone_if_one_is_named() -> None:
    @workflow("other", search=["id"])
    async def other(step: WorkflowStep, params: dict[str, str]) -> None: ...

    declare("customer")
    assert said("--workflow", "other") == ["other: params.id: 0 instances, complete"]
    assert said("--workflow", "other", "--workflow", "order") == [
        "order: params.customer: 0 instances, complete",
        "other: params.id: 0 instances, complete",
    ]
    with pytest.raises(CommandError, match='There is no workflow "orders"'):
        said("--workflow", "orders")


def test_it_says_that_nothing_is_declared() -> None:
    declare()
    assert said() == ["No search paths are declared. Add them to a workflow: @workflow(search=[…])."]
