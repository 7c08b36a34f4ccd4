"""`workflow pause --all-open` and `workflow resume --all-paused`: all at once, for a reason, and confirmed."""

from __future__ import annotations

import io
import json
from contextlib import nullcontext
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from engine import WorkflowStep, workflow, workflows
from engine.command.local import bulk
from engine.models import Audit, Instance, ScheduleRow

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_registry")]


@pytest.fixture(autouse=True)
def _declared(own_registry: None) -> None:
    for name in ("one", "other"):

        @workflow(name)
        async def waits(step: WorkflowStep) -> None:
            await step.wait_for_event("go")


def start(name: str, count: int) -> list[Instance]:
    return workflows[name].start_many([{"params": None}] * count).created


def run(*arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("workflow", *arguments, "--json", stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def refused(*arguments: str) -> str:
    with pytest.raises(CommandError) as caught:
        call_command("workflow", *arguments)
    assert caught.value.returncode == 2
    return str(caught.value)


def statuses(name: str) -> set[str]:
    return set(Instance.objects.filter(workflow=name).values_list("status", flat=True))


def test_all_open_instances_are_paused_and_each_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "BATCH", 2)
    instances = start("one", 5)
    done = start("one", 1)[0]
    done.terminate()
    held = start("other", 1)[0]
    now = timezone.now()
    Instance.objects.filter(key=held.key).update(status="running", owner=7, started_at=now, wake_at=now)
    found = run("pause", "--all-open", "--reason", "restored", "--yes", "--by", "ana")
    assert found == {"paused": 5, "waiting_for_pause": 1, "paused_schedules": 0}
    assert {one.refresh().status for one in instances} == {"paused"}
    assert (held.refresh().status, done.refresh().status) == ("waiting_for_pause", "terminated")
    trail = Audit.objects.filter(verb="pause").values_list("actor", "reason")
    assert set(trail) == {("ana", "restored")}
    assert len(trail) == 6


def test_one_workflow_can_be_chosen() -> None:
    start("one", 2), start("other", 2)
    assert run("pause", "--all-open", "--workflow", "one", "--reason", "no", "--yes")["paused"] == 2
    assert (statuses("one"), statuses("other")) == ({"paused"}, {"queued"})


def test_schedules_are_paused_with_them_if_asked_for() -> None:
    row = ScheduleRow.objects.create(
        workflow="one", name="daily", expression="0 9 * * *", timezone="UTC", next_at=timezone.now()
    )
    assert run("pause", "--all-open", "--reason", "no", "--yes")["paused_schedules"] == 0
    assert run("pause", "--all-open", "--schedules", "--reason", "no", "--yes")["paused_schedules"] == 1
    row.refresh_from_db()
    assert row.paused_at is not None


def test_those_paused_for_a_reason_are_resumed_and_others_stay() -> None:
    start("one", 3)
    before = start("other", 1)[0]
    before.pause(by="ana", reason="the courier is on strike")
    run("pause", "--all-open", "--reason", "restored", "--yes")
    by_engine = start("other", 1)[0]
    Instance.objects.filter(key=by_engine.key).update(
        status="paused", wake_at=None, paused_at=timezone.now(), pause_reason={"type": "NonDeterminismError"}
    )
    assert run("resume", "--all-paused", "--paused-for", "restored", "--yes") == {"resumed": 3}
    assert (before.refresh().status, by_engine.refresh().status) == ("paused", "paused")
    assert run("resume", "--all-paused", "--yes") == {"resumed": 1}
    assert (before.refresh().status, by_engine.refresh().status) == ("queued", "paused")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pause", "--all-open", "--yes"), "requires a reason"),
        (("pause", "--all-open", "--reason", "restored"), "Pause 2 open instances? Add --yes."),
        (("resume", "--all-paused"), "Resume up to 0 paused instances? Add --yes."),
        (("pause", "one/x", "--yes"), "--yes goes with all instances"),
        (("resume", "one/x", "--paused-for", "no"), "--paused-for goes with all instances"),
    ],
)
def test_without_what_it_needs_nothing_is_changed(
    arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    start("one", 2)
    assert said in refused(*arguments)
    assert statuses("one") == {"queued"}
    assert not Audit.objects.filter(verb="pause").exists()


@pytest.mark.parametrize(("typed", "status"), [("y", "paused"), ("", "queued"), ("no", "queued")])
def test_a_person_is_asked(typed: str, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal())
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or typed)  # type: ignore[func-returns-value]
    start("one", 2)
    declined = (
        nullcontext() if status == "paused" else pytest.raises(CommandError, match="Nothing was changed")
    )
    with declined:
        call_command("workflow", "pause", "--all-open", "--reason", "restored", stdout=io.StringIO())
    assert asked == ["Pause 2 open instances? [y/N] "]
    assert statuses("one") == {status}
