"""`manage.py workflow health`: the facts, the limits, and the exit codes."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from engine import WorkflowStep, workflow, workflows
from engine.management.commands.workflow import Command
from engine.models import Instance, OpenRequest, ScheduleRow, Worker
from engine.status import health, schema

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")


async def nap(step: WorkflowStep) -> None:
    await step.sleep("nap", "1 day")


def works(*, seen: timedelta = timedelta(0), role: str = "shift", number: int = 1) -> None:
    """Let a worker have sent a heartbeat this long ago."""
    at = timezone.now() - seen
    facts = {
        "role": role,
        "name": "w",
        "workflows": ["doze"],
        "slots": 4,
        "held": 1,
        "started_at": at,
        "seen_at": at,
    }
    Worker.objects.create(worker_id=number, **facts)


def due(ago: timedelta, **options: Any) -> Instance:
    instance = workflow("doze", **options)(nap).start()
    Instance.objects.filter(key=instance.key).update(wake_at=timezone.now() - ago)
    return instance


def ask(*arguments: str) -> tuple[int, dict[str, Any]]:
    out, code = io.StringIO(), 0
    try:
        call_command("workflow", "health", *arguments, "--json", stdout=out)
    except CommandError as error:
        code = error.returncode
    found: dict[str, Any] = json.loads(out.getvalue())
    return code, found


def test_a_worker_and_nothing_due_is_healthy() -> None:
    works()
    works(role="cluster", number=-1)
    code, found = ask()
    assert (code, found["is_healthy"], found["problems"]) == (0, True, [])
    assert (found["clusters"], found["workers"], found["slots"], found["held"]) == (1, 1, 4, 1)
    assert (found["due"], found["oldest_due_seconds"]) == (0, None)


def test_no_live_worker_is_unhealthy_and_its_last_heartbeat_is_shown() -> None:
    works(seen=timedelta(seconds=40))
    code, found = ask()
    assert (code, found["workers"]) == (1, 0)
    assert found["problems"] == ["No worker is running, so no workflow runs."]
    assert found["last_heartbeat_at"] is not None
    assert ask("--min-workers", "0")[0] == 0


def test_an_instance_that_is_due_for_too_long_is_unhealthy() -> None:
    works()
    due(timedelta(seconds=90))
    code, found = ask()
    assert (code, found["due"]) == (1, 1)
    assert 90 <= found["oldest_due_seconds"] < 150
    [problem] = found["problems"]
    assert problem.startswith("1 instance is due and not claimed, the oldest for 1 m")
    assert ask("--max-due", "10m")[0] == 0


def test_counting_stops_and_the_oldest_is_found_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "MOST", 2)
    works()
    due(timedelta(seconds=1))
    for _ in range(3):
        workflows["doze"].start()
    oldest = workflow("a-doze")(nap).start()
    Instance.objects.filter(key=oldest.key).update(wake_at=timezone.now() - timedelta(minutes=9))
    workflow("z-doze")(nap).start()
    found = ask()[1]
    assert (found["due"], found["oldest_due_workflow"]) == (2, "a-doze")
    assert found["oldest_due_seconds"] >= 540


def test_instances_of_a_workflow_at_its_limit_wait_their_turn() -> None:
    works()
    due(timedelta(minutes=5), max_running=1)
    held = workflows["doze"].start()
    now = timezone.now()
    Instance.objects.filter(key=held.key).update(
        status="running", owner=1, started_at=now, wake_at=now + timedelta(minutes=1)
    )
    assert ask()[0] == 0


def test_an_overdue_schedule_is_unhealthy() -> None:
    works()
    ScheduleRow.objects.create(
        workflow="doze",
        name="daily",
        expression="0 9 * * *",
        timezone="UTC",
        next_at=timezone.now() - timedelta(minutes=2),
    )
    code, found = ask()
    assert (code, found["schedules_overdue"]) == (1, 1)
    assert found["problems"] == ["1 schedule is overdue by more than 1 m 00 s."]
    assert ask("--max-due", "5m")[0] == 0


def test_what_needs_somebody_is_counted_and_unhealthy_only_if_asked_for() -> None:
    works()
    paused = due(timedelta(0))
    Instance.objects.filter(key=paused.key).update(
        status="paused", wake_at=None, paused_at=timezone.now(), pause_reason={"type": "CodeChangedError"}
    )
    OpenRequest.objects.create(instance=paused, generation=1, seq=1, opened_at=timezone.now())
    code, found = ask()
    assert (code, found["paused_by_engine"], found["open_requests"], found["need_somebody"]) == (0, 1, 1, 2)
    out = io.StringIO()
    call_command("workflow", "health", stdout=out)
    assert "for people  1 paused by the engine, 1 request\n" in out.getvalue()
    code, found = ask("--max-paused", "0")
    assert (code, found["problems"]) == (1, ["1 instance is paused by the engine; at most 0 may be."])


def test_a_database_that_lacks_migrations_is_unhealthy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "_expected", lambda applied, apps: [("engine", "0099_next")])
    code, found = ask()
    assert (code, found) == (
        1,
        {
            "is_healthy": False,
            "problems": [
                "The database lacks the migration engine.0099_next. Run `python manage.py migrate`."
            ],
        },
    )


def test_a_database_that_does_not_answer_is_unhealthy_and_its_address_is_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = {"host": "127.0.0.1", "port": 1, "user": "ada", "password": "hunter2", "dbname": "vault"}
    monkeypatch.setattr(health, "parameters", lambda alias: secret)
    code, found = ask()
    assert (code, found["problems"]) == (1, ["The database does not answer (OperationalError)."])


def test_a_slow_database_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "APPLIED", "SELECT pg_sleep(60)")
    code, found = ask("--timeout", "1")
    assert (code, found["problems"]) == (1, ["The database did not answer within 1 s."])


def test_the_database_refuses_every_write_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_FACTS", "DELETE FROM engine_worker")
    assert ask()[1]["problems"] == ["The database does not answer (ReadOnlySqlTransaction)."]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--max-due", "soon"), '"soon"'),
        (("--min-workers", "-1"), '"-1" is not a number'),
        (("--timeout", "0"), '"0" is not a number'),
    ],
)
def test_unusable_limits_exit_with_2(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        Command().run_from_argv(["manage.py", "workflow", "health", *arguments])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_people_read_the_problems_and_the_facts() -> None:
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("workflow", "health", stdout=out)
    head, problem, workers, *_ = out.getvalue().splitlines()
    assert (head, problem) == ("unhealthy", "No worker is running, so no workflow runs.")
    assert workers == "workers     0 workers in 0 clusters, 0 of 0 slots in use"
