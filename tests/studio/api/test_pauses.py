"""Pauses of workflows over HTTP: what is answered, refused and hidden."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine import pauses
from engine.models import Audit
from tests.studio import factories
from tests.studio.api.conftest import Program, Programs

pytestmark = pytest.mark.django_db


def read(answer: Any, status: int = 200) -> Any:
    assert answer.status_code == status, answer.content
    return json.loads(answer.content)


def test_it_is_paused_listed_and_resumed(program: Program) -> None:
    for _ in range(3):
        factories.instance("queued", workflow="nap")
    made = read(program.post("/workflows/nap/pause", {"reason": "down"}))["paused_workflow"]
    assert {key: made[key] for key in ("workflow", "reason", "released", "held")} == {
        "workflow": "nap",
        "reason": "down",
        "released": 0,
        "held": 3,
    }
    assert read(program.get("/paused-workflows"))["paused_workflows"] == [made]
    some = read(program.post("/workflows/nap/resume", {"count": 2}))
    assert some == {"workflow": "nap", "released": 2, "held": 1, "is_paused": True}
    rest = read(program.post("/workflows/nap/resume"))
    assert rest == {"workflow": "nap", "released": 1, "held": 0, "is_paused": False}
    assert read(program.get("/paused-workflows"))["paused_workflows"] == []


def test_a_second_pause_answers_the_first_and_a_second_resume_changes_nothing(program: Program) -> None:
    pauses.pause("nap", by="zoe", reason="mine")
    again = read(program.post("/workflows/nap/pause", {"reason": "yours"}))["paused_workflow"]
    assert (again["paused_by"], again["reason"]) == ("zoe", "mine")
    for _ in range(2):
        assert read(program.post("/workflows/nap/resume"))["is_paused"] is False
    rows = Audit.objects.filter(verb__startswith="workflow-").order_by("key")
    assert [(one.verb, one.outcome) for one in rows] == [
        ("workflow-pause", "done"),
        ("workflow-resume", "done"),
    ]


@pytest.mark.parametrize("action", ["pause", "resume"])
def test_an_unknown_workflow_is_not_found(program: Program, action: str) -> None:
    assert read(program.post(f"/workflows/no-such/{action}"), 404)["code"] == "not_found"


@pytest.mark.parametrize("count", [0, -1, 1_000_001])
def test_a_count_out_of_range_is_refused_with_its_place(program: Program, count: int) -> None:
    pauses.pause("nap")
    found = read(program.post("/workflows/nap/resume", {"count": count}), 422)
    assert found["errors"][0]["path"] == "count"
    assert [one.released for one in pauses.paused()] == [0]


@pytest.mark.parametrize("count", ["2", 1.5, True, [1]])
def test_a_count_that_is_no_whole_number_is_refused(program: Program, count: object) -> None:
    pauses.pause("nap")
    read(program.post("/workflows/nap/resume", {"count": count}), 422)
    assert [one.released for one in pauses.paused()] == [0]


def test_a_token_sees_and_steers_only_the_workflows_that_it_names(program_of: Programs) -> None:
    for name in ("nap", "tick"):
        pauses.pause(name)
    narrow = program_of("operator", workflows=["nap"])
    found = read(narrow.get("/paused-workflows"))["paused_workflows"]
    assert [one["workflow"] for one in found] == ["nap"]
    read(narrow.post("/workflows/tick/resume"), 404)
    read(narrow.post("/workflows/nap/resume"))
    assert [one.workflow for one in pauses.paused()] == ["tick"]
