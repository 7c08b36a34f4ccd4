"""How `manage.py workflow replay` reads, and what it prints."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from engine import WorkflowStep, workflows
from engine.dry_run import reading
from engine.management.commands.workflow import Command
from engine.models import Instance
from tests.integration.dry_runs import deploy, parked, ran, replay, sell
from tests.integration.sessions import Hints
from tests.stories import run_to_end

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")


@pytest.fixture(autouse=True)
def _nothing_ran() -> Iterator[None]:
    ran.clear()
    yield
    ran.clear()


def test_the_database_refuses_every_write_of_a_dry_run(hints: Hints) -> None:
    refused: list[str] = []

    async def now(step: WorkflowStep) -> None:
        # Django's own cursors are refused to handlers anyway.
        answer = raw.pgconn.exec_(b"UPDATE engine_instance SET tags = '{}'")
        refused.append(answer.error_message.decode().strip())
        await sell(step)

    parked()
    hints.heard()
    deploy(now)
    raw = connection.connection
    assert replay()[0] == 0
    assert refused == ["ERROR:  cannot execute UPDATE in a read-only transaction"]
    assert hints.heard() == []
    Instance.objects.update(tags=["writable again"])


def test_a_role_that_may_only_read_is_enough() -> None:
    parked()
    with connection.cursor() as cursor:
        role = f"reader_of_{connection.settings_dict['NAME']}"
        cursor.execute(
            f"CREATE ROLE {role}; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}; SET ROLE {role}"
        )
        try:
            assert replay()[0] == 0
        finally:
            cursor.execute(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")


def test_many_instances_are_read_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BATCH_BYTES", 1)
    asked: list[list[int]] = []
    read = reading.read
    monkeypatch.setattr(reading, "read", lambda keys: asked.append(keys) or read(keys))  # type: ignore[func-returns-value]
    deploy(sell)
    workflows["sell"].start_many([{"params": None}] * 5)
    code, found = replay()
    assert (code, found["replayed"], [len(keys) for keys in asked]) == (0, 5, [1] * 5)


def test_no_more_findings_are_shown_than_asked_for_and_all_are_counted() -> None:
    parked()
    workflows["sell"].start_many([{"params": None}] * 5)
    del workflows._workflows["sell"]
    code, found = replay("--all-open", "--limit", "2")
    assert (code, len(found["findings"]), found["unknown"]) == (1, 2, 6)


def test_one_instance_or_one_workflow_can_be_chosen() -> None:
    instance = parked()
    deploy(sell, "other").start()
    del workflows._workflows["sell"]
    assert replay("--all-open", "--workflow", "other")[0] == 0
    assert replay(str(instance))[1]["unknown"] == 1


def test_people_read_where_it_stops_and_a_count() -> None:
    instance = parked()
    del workflows._workflows["sell"]
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("workflow", "replay", "--all-open", stdout=out)
    head, _, counts = out.getvalue().splitlines()
    assert head == f"unknown  sell/{instance.id}  (waiting)"
    assert counts.startswith("1 open instance replayed: 0 would go on as recorded")


def test_what_a_handler_prints_does_not_go_into_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    async def now(step: WorkflowStep) -> None:
        print("selling")
        await sell(step)

    parked()
    deploy(now)
    call_command("workflow", "replay", "--all-open", "--json")
    said = capsys.readouterr()
    assert json.loads(said.out)["fits"] == 1
    assert said.err == "selling\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "one of the arguments WORKFLOW/ID --all-open is required"),
        (("sell/one", "--all-open"), "not allowed with argument"),
        (("sell/one", "--workflow", "sell"), "--workflow goes with --all-open"),
        (("--all-open", "--timeout", "soon"), '"soon" is not a number'),
    ],
)
def test_arguments_that_do_not_go_together_exit_with_2(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        Command().run_from_argv(["manage.py", "workflow", "replay", *arguments])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_a_finished_instance_is_refused() -> None:
    instance = parked()
    instance.send_event("packed")
    run_to_end(instance)
    with pytest.raises(CommandError, match="is complete, so replay is no longer possible"):
        call_command("workflow", "replay", str(instance))
