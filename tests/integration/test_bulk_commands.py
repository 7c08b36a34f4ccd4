"""`workflow bulk …`: bulk jobs on the command line."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from django.core.management.base import CommandError

from engine import WorkflowStep, bulk, pauses, workflow
from engine.command import bulk_jobs
from engine.jobs import actions, pace
from engine.models import Audit, BulkJob, Instance
from studio.client.operations import bulk_jobs as bulk_operations
from tests.integration.test_command import answer, misused, refused, run
from tests.stories import run_to_end, wait_for


@pytest.fixture(autouse=True)
def order(engine_db: None, own_registry: None) -> Any:
    """A workflow with three instances that wait; the first has ended."""

    async def handle(step: WorkflowStep) -> None:
        await step.listen("go")

    declared: Any = workflow("order")(handle)
    for number in range(3):
        declared.start(id=f"o-{number}")
    declared.get("o-0").terminate()
    return declared


def work(id: str) -> None:
    run_to_end(Instance.objects.get(workflow="reprise.bulk", id=id))


def statuses() -> list[str]:
    return list(Instance.objects.of_users().order_by("key").values_list("status", flat=True))


def test_a_preview_has_a_line_for_each_reason() -> None:
    assert run("bulk", "preview", "pause", "--query", "workflow:order").splitlines() == [
        "Pause: 2 of 3 instances.",
        "2  The action applies. (order/o-1, order/o-2)",
        "1  It has ended. (order/o-0)",
    ]
    found = answer("bulk", "preview", "restart", "order/o-1", "--keys", "same")["preview"]
    assert (found["total"], found["eligible"], found["skipped"]) == (1, 1, [])
    assert not BulkJob.objects.exists()


def test_a_job_is_started_listed_and_shown() -> None:
    said = run(
        *("bulk", "start", "pause", "--query", "workflow:order", "--id", "night", "--yes"),
        *("--by", "zoe", "--reason", "The bank is down."),
    )
    assert said == "Bulk job night is running: 0 of 3 done, 1 skipped, 2 left.\n"
    work("night")
    assert statuses() == ["terminated", "paused", "paused"]
    head, line, why = run("bulk").splitlines()
    assert head.split() == ["STATUS", "ID", "ACTION", "STARTED", "DONE"]
    assert (line.split()[:3], line.split()[-3:]) == (["complete", "night", "pause"], ["2", "of", "3"])
    assert why == "    zoe: The bank is down."
    first, *facts = run("bulk", "show", "night", "--outcome", "skipped").splitlines()
    assert first == "night  complete"
    assert facts[:3] == [
        "action   pause",
        "search   workflow:order",
        "by       zoe: The bank is down.",
    ]
    assert facts[-4:] == [
        "so far   2 of 3 done, 1 skipped.",
        "",
        "INSTANCES (skipped)",
        "skipped  order/o-0  It has ended.",
    ]
    document = answer("bulk", "show", "night", "--outcome", "all", "--limit", "2")
    assert [one["id"] for one in document["items"]] == ["o-0", "o-1"]
    rest = answer("bulk", "show", "night", "--outcome", "all", "--after", str(document["next"]))
    assert ([one["id"] for one in rest["items"]], rest["next"]) == (["o-2"], None)
    assert answer("bulk", "list")["jobs"] == [rest["job"]]


def test_a_job_is_paused_resumed_and_aborted() -> None:
    run("bulk", "start", "pause", "order/o-1", "order/o-2", "--id", "night", "--yes")
    assert run("bulk", "pause", "night") == "Bulk job night is paused: 0 of 2 done, 2 left.\n"
    assert answer("bulk", "resume", "night")["job"]["status"] == "running"
    assert run("bulk", "abort", "night", "--by", "zoe", "--reason", "no") == (
        "Bulk job night is aborted: 0 of 2 done, 2 left.\n"
    )
    assert Audit.objects.filter(verb="bulk-abort").values_list("actor", "reason").get() == ("zoe", "no")
    assert statuses()[1:] == ["queued", "queued"]


def test_what_failed_is_shown_with_its_error_and_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(instance: Instance, **options: Any) -> Instance:
        raise ValueError("a trigger refused it")

    run("bulk", "start", "pause", "order/o-1", "--id", "night", "--yes")
    with monkeypatch.context() as patch:
        patch.setitem(actions._FUNCTIONS, "pause", fails)
        work("night")
    last = run("bulk", "show", "night").splitlines()[-1]
    assert last == "failed  order/o-1  ValueError: a trigger refused it"
    assert run("bulk", "retry-failed", "night") == "Bulk job night is running: 0 of 1 done, 1 left.\n"
    work("night")
    assert statuses()[1] == "paused"


@pytest.mark.parametrize(
    ("typed", "status"), [("y", "paused"), ("yes", "paused"), ("", "queued"), ("n", "queued")]
)
def test_a_start_shows_the_preview_and_asks(monkeypatch: pytest.MonkeyPatch, typed: str, status: str) -> None:
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return typed

    monkeypatch.setattr("builtins.input", ask)
    monkeypatch.setattr(sys, "stdin", _Terminal())
    words = ("bulk", "start", "pause", "--query", "workflow:order", "--id", "night")
    if status == "queued":
        assert refused(*words) == "Nothing was changed.\n"
        assert not BulkJob.objects.exists()
    else:
        run(*words)
        assert bulk.get("night").total == 3
    (question,) = asked
    assert question.splitlines() == [
        "2  The action applies. (order/o-1, order/o-2)",
        "1  It has ended. (order/o-0)",
        "Pause 2 of 3 instances? [y/N] ",
    ]


class _Terminal:
    def isatty(self) -> bool:
        return True


def test_a_start_waits_until_the_job_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_jobs.time, "sleep", lambda _: work("night"))
    said = run("bulk", "start", "pause", "--query", "workflow:order", "--id", "night", "--yes", "--wait")
    assert said == "Bulk job night is complete: 2 of 3 done, 1 skipped.\n"


def test_a_start_that_waits_ends_with_1_if_something_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(instance: Instance, **options: Any) -> Instance:
        raise ValueError("a trigger refused it")

    monkeypatch.setitem(actions._FUNCTIONS, "pause", fails)
    monkeypatch.setattr(bulk_jobs.time, "sleep", lambda _: work("night"))
    refused("bulk", "start", "pause", "order/o-1", "--id", "night", "--yes", "--wait")


def test_a_job_that_pauses_itself_says_why_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(_: float) -> None:
        wait_for(Instance.objects.get(workflow="reprise.bulk", id="night"), "paused")

    monkeypatch.setattr(bulk_jobs.time, "sleep", wait)
    words = ("bulk", "start", "pause", "order/o-1", "order/o-2", "--id", "night", "--yes", "--wait")
    with pytest.raises(CommandError) as ended:
        run(*words, "--ask-after", "1", "--at-once", "10", "--stop-after", "never")
    assert ended.value.returncode == 1
    assert run("bulk", "show", "night").splitlines()[-4:] == [
        f"paused   {bulk.get('night').paused_at:%Y-%m-%d %H:%M:%S} UTC",
        "pace     10 at a time, asks after 1",
        "so far   1 of 2 done, 1 left.",
        "because  The first has been tried. Resume the job to go on.",
    ]
    assert answer("bulk", "show", "night")["job"]["pace"] == {
        "at_once": 10,
        "ask_after": 1,
        "stop_after": None,
    }
    assert run("bulk", "resume", "night").startswith("Bulk job night is running: 1 of 2 done, 1 left")
    work("night")
    assert statuses()[1:] == ["paused", "paused"]


def test_the_workflows_are_resumed_with_the_start() -> None:
    pauses.pause("order", reason="The bank is down.")
    run("bulk", "start", "retry", "--query", "workflow:order", "--yes")
    assert len(pauses.paused()) == 1
    run("bulk", "start", "pause", "--query", "workflow:order", "--yes", "--resume-workflows")
    assert pauses.paused() == []


def test_the_actions_are_those_of_the_engine() -> None:
    assert tuple(bulk.BulkAction) == bulk_jobs.ACTIONS
    assert bulk_jobs.STOP_AFTER == bulk_operations.STOP_AFTER == pace.STOP_AFTER


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["preview", "pause"], "Pass either --query SEARCH or instances as WORKFLOW/ID."),
        (
            ["preview", "pause", "order/o-1", "--query", "workflow:order"],
            "Pass either --query SEARCH or instances as WORKFLOW/ID.",
        ),
        (["start", "restart", "order/o-1", "--yes"], "The action restart requires a reason: add --reason."),
        (["start", "terminate", "order/o-1", "--reason", " "], "requires a reason: add --reason."),
        (["start", "pause", "order/o-1"], "Pause 1 of 1 instance? Add --yes."),
        (["start", "delete", "order/o-1"], "invalid choice: 'delete'"),
        (["start", "pause", "o-1"], '"o-1" is not an instance.'),
        (["start", "pause", "order/o-1", "--at-once", "0"], '"0" is not a number from 1 on.'),
        (["start", "pause", "order/o-1", "--stop-after", "x"], '"x" is not a number from 1 on.'),
        (["show", "no id"], '"no id" is not the id of a job.'),
        (["show", "night", "--after", "-1"], '"-1" is not a position.'),
        (["show", "night", "--after", "x"], '"x" is not a position.'),
    ],
)
def test_words_that_do_not_go_together_start_nothing(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert said in misused(capsys, "bulk", *words)
    assert not BulkJob.objects.exists()


def test_one_unknown_instance_and_nothing_is_done() -> None:
    said = refused("bulk", "start", "pause", "order/o-1", "order/o-7", "--yes")
    assert said == 'Workflow "order" has no instance "o-7". Ids are unique per workflow.\n'
    assert not BulkJob.objects.exists()
