"""`manage.py workflow replay`: what today's code would do with the open instances, without a trace."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from pydantic import BaseModel

from engine import RollbackContext, StepError, WorkflowStep, workflow, workflows
from engine.dry_run import reading
from engine.management.commands.workflow import Command
from engine.models import Instance, Step
from tests.integration.sessions import Hints
from tests.stories import run_to_end, running_shift, wait_for

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")

ran: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> Iterator[None]:
    ran.clear()
    yield
    ran.clear()


def note(what: str) -> str:
    ran.append(what)
    return what


def deploy(handler: Any, name: str = "sell", **options: Any) -> Any:
    """Declare the workflow again, as a deployment of other code does."""
    workflows._workflows.pop(name, None)
    return workflow(name=name, **options)(handler)


async def sell(step: WorkflowStep) -> None:
    await step.do("charge", note, "charge")
    await step.do("print-invoice", note, "print-invoice")
    await step.wait_for_event("packed")
    await step.do("ship", note, "ship")


def parked(handler: Any = sell, params: Any = None, **options: Any) -> Instance:
    """Start an instance, and let it reach its wait."""
    instance: Instance = deploy(handler, **options).start(params)
    with running_shift():
        wait_for(instance, "waiting")
    ran.clear()
    return instance


def replay(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the JSON of a dry run, which leaves every row as it is and runs no body."""
    out, code, before = io.StringIO(), 0, rows()
    try:
        call_command("workflow", "replay", *(arguments or ("--all-open",)), "--json", stdout=out)
    except CommandError as error:
        code = error.returncode
    assert (rows(), ran) == (before, [])
    found: dict[str, Any] = json.loads(out.getvalue())
    return code, found


def only(*arguments: str) -> dict[str, Any]:
    """Return the only finding of a dry run that finds one."""
    code, found = replay(*arguments)
    assert (code, len(found["findings"])) == (1, 1)
    [one] = found["findings"]
    assert found[one["verdict"]] == 1
    return dict(one)


def rows() -> dict[str, list[str]]:
    """Return everything that the database has, with what each row's last writer was."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename")
        tables = [name for (name,) in cursor.fetchall()]
        found = {}
        for table in tables:
            cursor.execute(f'SELECT xmin || t::text FROM "{table}" t ORDER BY 1')
            found[table] = [row for (row,) in cursor.fetchall()]
    return found


# Nothing to report


def test_the_same_code_goes_on_and_exits_with_0() -> None:
    parked()
    assert replay() == (
        0,
        {"findings": [], "replayed": 1, "fits": 1, "differs": 0, "stops": 0, "unknown": 0},
    )


def test_steps_at_the_end_are_no_difference_and_finished_instances_are_not_asked() -> None:
    parked()
    other = parked()
    other.send_event("packed")
    run_to_end(other)
    ran.clear()

    async def longer(step: WorkflowStep) -> None:
        await sell(step)
        await step.do("thank", note, "thank")

    deploy(longer)
    code, found = replay()
    assert (code, found["replayed"], found["fits"]) == (0, 1, 1)


def test_a_failure_that_is_recorded_is_no_error_of_the_code() -> None:
    def fail() -> None:
        raise ValueError("no")

    async def guarded(step: WorkflowStep) -> None:
        try:
            await step.do("charge", fail, max_attempts=1)
        except StepError:
            await step.wait_for_event("retry")

    async def unguarded(step: WorkflowStep) -> None:
        await step.do("charge", fail, max_attempts=1)

    parked(guarded)
    assert replay()[0] == 0
    deploy(unguarded)
    assert only()["unreached_steps"] == ["retry"]


def test_open_steps_of_every_kind_are_continued_without_running_anything() -> None:
    async def child(step: WorkflowStep) -> None:
        await step.wait_for_event("go")

    async def busy(step: WorkflowStep) -> None:
        await step.progress("started")
        await asyncio.gather(
            step.sleep("nap", "1 day"),
            step.wait_for_event("packed", timeout="1 day"),
            step.request("approve", bool, message="Ship it?"),
            step.run_workflow("child", workflows["child"]),
            step.map("items", [1, 2], always_fails, max_attempts=5, delay="1h"),
            step.do("retry", always_fails, 1, max_attempts=5, delay="1h"),
        )

    deploy(child, "child")
    parked(busy)
    code, found = replay("--all-open", "--workflow", "sell")
    assert (code, found["replayed"], found["fits"]) == (0, 1, 1)


def always_fails(item: int, index: int = 0) -> None:
    ran.append("always fails")
    raise RuntimeError("not yet")


# What would stop


def test_params_that_no_longer_match_their_type_would_stop_it() -> None:
    class Order(BaseModel):
        number: str

    class OrderNow(BaseModel):
        number: str
        currency: str

    async def bill(step: WorkflowStep, order: Order) -> None:
        await step.wait_for_event("packed")

    async def bill_now(step: WorkflowStep, order: OrderNow) -> None:
        await step.wait_for_event("packed")

    parked(typed(bill, Order), {"number": "A-1"})
    deploy(typed(bill_now, OrderNow))
    found = only()
    assert (found["verdict"], found["error"], found["step"]) == ("stops", "NonDeterminismError", None)
    assert "currency" in found["reason"]


def typed(handler: Any, params: type) -> Any:
    handler.__annotations__ = {"step": WorkflowStep, "order": params, "return": None}
    return handler


def test_a_recorded_output_that_no_longer_matches_its_type_would_stop_it_at_that_step() -> None:
    def count() -> int:
        return 3

    def name() -> dict[str, int]:
        return {}

    count.__annotations__, name.__annotations__ = {"return": int}, {"return": dict[str, int]}

    async def before(step: WorkflowStep) -> None:
        await step.do("charge", note, "charge")
        await step.do("count", count)
        await step.wait_for_event("packed")

    async def now(step: WorkflowStep) -> None:
        await step.do("charge", note, "charge")
        await step.do("count", name)
        await step.wait_for_event("packed")

    parked(before)
    deploy(now)
    found = only()
    assert (found["verdict"], found["error"], found["step"]) == ("stops", "NonDeterminismError", "count")


def test_a_handler_that_raises_before_its_next_step_would_stop() -> None:
    async def now(step: WorkflowStep) -> None:
        raise KeyError(await step.do("charge", note, "charge"))

    parked()
    deploy(now)
    found = only()
    assert (found["verdict"], found["error"], found["step"]) == ("stops", "KeyError", "charge")
    assert 'after step "charge"' in found["reason"]


def test_a_handler_that_loops_would_stop_and_does_not_stop_the_dry_run() -> None:
    async def now(step: WorkflowStep) -> None:
        await step.do("charge", note, "charge")
        while True:
            len("")

    parked()
    deploy(now)
    found = only("--all-open", "--timeout", "1")
    assert (found["verdict"], found["error"], found["step"]) == ("stops", "WorkflowTimeoutError", "charge")


def test_a_handler_that_waits_for_nothing_would_stop() -> None:
    async def now(step: WorkflowStep) -> None:
        await asyncio.Event().wait()

    parked()
    deploy(now)
    assert (only()["verdict"], only()["error"]) == ("stops", "DeadlockError")


def test_a_map_over_other_items_would_stop_where_it_is_open() -> None:
    async def over(step: WorkflowStep, items: list[int]) -> None:
        await step.map("items", items, always_fails, max_attempts=5, delay="1h")

    async def before(step: WorkflowStep) -> None:
        await over(step, [1, 2])

    async def now(step: WorkflowStep) -> None:
        await over(step, [1, 2, 3])

    parked(before)
    assert replay()[0] == 0
    deploy(now)
    found = only()
    assert (found["verdict"], found["error"], found["step"]) == ("stops", "NonDeterminismError", "items")


def test_changed_code_that_a_person_has_to_accept_would_stop_it() -> None:
    async def now(step: WorkflowStep) -> None:
        await sell(step)

    parked(on_code_change="pause")
    assert replay()[0] == 0
    deploy(now, on_code_change="pause")
    assert (only()["verdict"], only()["error"]) == ("stops", "CodeChangedError")


def test_an_instance_of_a_workflow_that_the_code_no_longer_has_is_named() -> None:
    instance = parked()
    del workflows._workflows["sell"]
    found = only()
    assert (found["workflow"], found["id"], found["verdict"]) == ("sell", instance.id, "unknown")
    assert found["reason"].startswith('The code declares no workflow "sell"')


def test_a_rollback_that_the_code_no_longer_has_would_stop() -> None:
    def undo(ctx: RollbackContext) -> None:
        ran.append("undo")
        raise RuntimeError("not yet")

    async def before(step: WorkflowStep) -> None:
        await step.do("charge", note, "charge", rollback=undo, rollback_options={"delay": "1h"})
        await step.do("ship", note, "ship")
        await step.fail("no")

    async def now(step: WorkflowStep) -> None:
        await step.do("charge", note, "charge")
        await step.do("ship", note, "ship")

    instance = deploy(before).start()
    with running_shift():
        wait_for(instance, "waiting")
    ran.clear()
    assert replay()[0] == 0
    deploy(now)
    assert (only()["error"], only()["step"]) == ("RollbackNotFoundError", "charge")


# What would take another way


def test_a_new_step_and_a_removed_one_are_named() -> None:
    async def now(step: WorkflowStep) -> None:
        await step.do("charge", note, "charge")
        await step.do("insure", note, "insure")
        await step.wait_for_event("packed")

    instance = parked()
    deploy(now)
    found = only()
    assert (found["id"], found["status"], found["verdict"]) == (instance.id, "waiting", "differs")
    assert (found["new_steps"], found["unreached_steps"]) == (["insure"], ["print-invoice", "packed"])
    assert found["step"] == "insure"


def test_a_step_that_is_no_longer_called_is_named() -> None:
    async def now(step: WorkflowStep) -> None:
        await step.do("charge", note, "charge")
        await step.wait_for_event("packed")

    parked()
    deploy(now)
    found = only()
    assert (found["verdict"], found["step"], found["new_steps"]) == ("differs", "print-invoice", [])


def test_a_new_step_beside_recorded_ones_is_named_even_if_the_handler_reaches_all_of_them() -> None:
    async def before(step: WorkflowStep) -> None:
        await asyncio.gather(step.wait_for_event("packed"), step.wait_for_event("paid"))

    async def now(step: WorkflowStep) -> None:
        calls = step.wait_for_event("packed"), step.do("insure", note, "insure"), step.wait_for_event("paid")
        await asyncio.gather(*calls)

    parked(before)
    assert replay()[0] == 0
    deploy(now)
    assert (only()["new_steps"], only()["unreached_steps"]) == (["insure"], [])


def test_a_step_that_a_pause_left_out_is_not_new() -> None:
    """The milestone after it is recorded, because the handler has gone on from there."""

    async def before(step: WorkflowStep) -> None:
        await asyncio.gather(step.wait_for_event("packed"), step.progress("asked"))

    instance = parked(before)
    Step.objects.filter(instance=instance, name="packed").delete()  # as the flush of a pause leaves it
    assert replay() == (
        0,
        {"findings": [], "replayed": 1, "fits": 1, "differs": 0, "stops": 0, "unknown": 0},
    )


# How it reads


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
