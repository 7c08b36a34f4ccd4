"""`workflow workflows …`: pauses of workflows on the command line."""

from __future__ import annotations

from typing import Any

import pytest

from engine import WorkflowStep, pauses, workflow
from engine.models import Audit
from tests.integration.test_command import answer, misused, refused, run

WHY = ("--reason", "The bank is down.")


@pytest.fixture(autouse=True)
def two(engine_db: None, own_registry: None) -> dict[str, Any]:
    """Two workflows; the first has three instances that are due."""

    async def handle(step: WorkflowStep) -> None: ...

    made = {name: workflow(name)(handle) for name in ("pay", "ship")}
    for number in range(3):
        made["pay"].start(id=f"pay-{number}")
    return made


def paused() -> list[str]:
    return [one.workflow for one in pauses.paused()]


def test_several_are_paused_and_the_list_says_which_and_why() -> None:
    said = run("workflows", "pause", "ship", "pay", *WHY, "--by", "zoe").splitlines()
    assert [line.split(" since ")[0] for line in said] == [
        "Workflow pay is paused by zoe",
        "Workflow ship is paused by zoe",
    ]
    assert said[0].endswith(" UTC: The bank is down.")
    pauses.resume("ship")
    head, *lines = run("workflows").splitlines()
    pay, ship = (line for line in lines if line.split()[1] in ("pay", "ship"))
    assert head.split() == ["STATE", "WORKFLOW", "HELD", "SINCE", "WHY"]
    assert pay.split()[:3] == ["paused", "pay", "3"]
    assert pay.endswith("zoe: The bank is down.")
    assert ship.split() == ["active", "ship"]


def test_the_first_pause_stays() -> None:
    run("workflows", "pause", "pay", *WHY, "--by", "zoe")
    again = answer("workflows", "pause", "pay", "--reason", "Me, too.")["pauses"]
    assert [(one["paused_by"], one["reason"], one["held"]) for one in again] == [
        ("zoe", "The bank is down.", 3)
    ]
    assert Audit.objects.filter(verb="workflow-pause").count() == 1


def test_some_are_released_and_then_all() -> None:
    run("workflows", "pause", "pay", *WHY)
    assert run("workflows", "resume", "pay", "--count", "2") == (
        "Workflow pay stays paused: 2 instances released, 1 still held.\n"
    )
    assert run("workflows", "resume", "pay") == (
        "Workflow pay is not paused any more: 1 instance released.\n"
    )
    assert run("workflows", "resume", "pay") == "Workflow pay is not paused.\n"
    assert paused() == []


def test_documents_have_what_the_texts_say() -> None:
    (one,) = answer("workflows", "pause", "pay", *WHY, "--by", "zoe")["pauses"]
    listed = {row["name"]: row["pause"] for row in answer("workflows", "list")["workflows"]}
    assert (listed["pay"], listed["ship"]) == (one, None)
    assert answer("workflows", "resume", "pay", "--count", "1")["resumed"] == [
        {"workflow": "pay", "released": 1, "held": 2, "is_paused": True}
    ]


def test_an_unknown_name_among_several_changes_nothing() -> None:
    refused("workflows", "pause", "pay", "shipp", *WHY)
    assert paused() == []
    pauses.pause("pay")
    refused("workflows", "resume", "pay", "shipp")
    assert paused() == ["pay"]


def test_a_count_beyond_the_limit_is_refused() -> None:
    pauses.pause("pay")
    refused("workflows", "resume", "pay", "--count", "1000001")
    assert pauses.paused()[0].released == 0


@pytest.mark.parametrize(
    "words",
    [
        ("pause", "pay"),
        ("pause", "pay", "--reason", " "),
        ("pause", *WHY),
        ("resume",),
        ("resume", "pay", "--count", "0"),
        ("resume", "pay", "--count", "few"),
    ],
)
def test_what_is_missing_or_wrong_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    misused(capsys, "workflows", *words)
    assert paused() == []
