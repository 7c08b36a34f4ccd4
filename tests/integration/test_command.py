"""`manage.py workflow …`: the engine's checks and its audit trail, readable answers, stable JSON, exit codes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone

from engine import workflows
from engine.management.commands.workflow import Command
from engine.models import Audit, Event, Instance, ScheduleRow, Step
from tests.studio import factories

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "command-line.md").read_text()
ORDER = '{"customer": "Ada", "items": [{"sku": "pen", "quantity": 2}]}'
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("only_possible_rows")]


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("workflow", *arguments, stdout=out)
    return out.getvalue()


def answer(*arguments: str) -> Any:
    """Return the JSON that is printed. Every key of it must be in the guide."""
    shape = json.loads(run(*arguments, "--json"))
    assert [key for key in _keys(shape) if f"`{key}`" not in PAGE] == []
    return shape


def _keys(shape: Any) -> set[str]:
    """Return the keys of a shape, except those within users' own values."""
    if isinstance(shape, list):
        return {key for one in shape for key in _keys(one)}
    if not isinstance(shape, dict):
        return set()
    own = ("params", "params_schema", "output", "payload", "data", "counts", "retention", "items")
    return {*shape} | {key for name, one in shape.items() if name not in own for key in _keys(one)}


def refused(*arguments: str) -> str:
    """Return a message as it appears on standard error."""
    command, err = Command(), io.StringIO()
    command._called_from_command_line = True  # type: ignore[attr-defined]
    with pytest.raises(SystemExit) as caught:
        call_command(command, *arguments, stderr=err)
    assert caught.value.code == 1
    return err.getvalue()


def misused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as caught:
        Command().run_from_argv(["manage.py", "workflow", *arguments])
    assert caught.value.code == 2
    return capsys.readouterr().err


# Starting


def test_start_takes_params_from_an_argument_a_file_and_the_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "order.json"
    file.write_text(ORDER)
    monkeypatch.setattr(sys, "stdin", io.StringIO(ORDER))
    run("start", "process-order", ORDER, "--id", "a", "--tag", "x", "--tag", "y")
    run("start", "process-order", "--file", str(file), "--id", "b")
    assert run("start", "process-order", "-", "--id", "c") == "Started process-order/c.\n"
    started = list(Instance.objects.order_by("id"))
    assert [(row.id, row.params["customer"]) for row in started] == [("a", "Ada"), ("b", "Ada"), ("c", "Ada")]
    assert started[0].tags == ["x", "y"]


def test_a_start_is_audited_with_the_name_of_the_systems_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    run("start", "tick", "--id", "a", "--reason", "month's end")
    run("start", "tick", "--id", "b", "--by", "cron")
    trail = Audit.objects.order_by("key").values_list("verb", "actor", "reason", "user_key")
    assert list(trail) == [("start", "cli:ada", "month's end", ""), ("start", "cron", "", "")]


def test_by_names_an_account_where_there_is_one() -> None:
    zoe = User.objects.create_user("zoe")
    run("start", "tick", "--by", "zoe")
    assert Audit.objects.values_list("actor", "user_key").get() == ("zoe", str(zoe.pk))


def test_an_instance_may_be_kept_for_a_time_of_its_own() -> None:
    run("start", "tick", "--id", "a", "--retention", "complete=7d", "--retention", "errored=ever")
    kept = Instance.objects.get().retention
    assert (kept["complete"], kept["errored"]) == (7 * 86_400, None)
    assert "retention" in refused("start", "tick", "--retention", "done=7d")


def test_wrong_params_are_named_with_their_paths_and_nothing_starts() -> None:
    wrong = '{"customer": "Ada", "items": [{"sku": "", "quantity": 0}]}'
    said = refused("start", "process-order", wrong)
    assert said.splitlines() == [
        "The params do not match the declared type:",
        "  items/0/sku: String should have at least 1 character",
        "  items/0/quantity: Input should be greater than 0",
    ]
    error = json.loads(refused("start", "process-order", wrong, "--json"))["error"]
    assert error["type"] == "InvalidParamsError"
    assert [one["path"] for one in error["errors"]] == ["items/0/sku", "items/0/quantity"]
    assert not Instance.objects.exists()
    assert not Audit.objects.exists()


def test_what_is_no_json_is_named_with_line_and_column() -> None:
    error = json.loads(refused("start", "process-order", '{\n  "customer": Ada}', "--json"))["error"]
    assert (error["type"], error["line"], error["column"]) == ("InvalidJSON", 2, 15)


def test_an_unknown_workflow_is_refused_with_the_nearest_name() -> None:
    assert 'Did you mean "process-order"?' in refused("start", "proces-order", ORDER)
    assert 'Did you mean "process-order"?' in refused("show", "proces-order/a")
    assert 'Did you mean "process-order"?' in refused("list", "--workflow", "proces-order")


def test_an_id_in_use_is_refused() -> None:
    run("start", "tick", "--id", "a")
    assert 'already has an instance "a"' in refused("start", "tick", "--id", "a")
    assert Instance.objects.count() == 1


# Listing


def test_instances_are_listed_newest_first_page_by_page() -> None:
    for number in range(5):
        factories.instance("complete", id=f"a-{number}")
    first = answer("list", "--limit", "2")
    assert [row["id"] for row in first["instances"]] == ["a-4", "a-3"]
    last = answer("list", "--limit", "3", "--before", str(first["older"]))
    assert [row["id"] for row in last["instances"]] == ["a-2", "a-1", "a-0"]
    assert last["older"] is None


def test_a_list_is_searched_and_ordered() -> None:
    factories.instance("complete", id="a-1", params={"region": "eu"})
    factories.instance("errored", id="a-2", params={"region": "us"})
    factories.instance("complete", id="b-1", params={"region": "eu"})
    found = answer("list", "--query", "params.region=eu", "--sort", "started")
    assert [row["id"] for row in found["instances"]] == ["a-1", "b-1"]
    assert found["searched"] == {"rows": None, "of": None, "hint": None}
    page = answer("list", "--sort=-finished", "--limit", "2")
    rest = answer("list", "--sort=-finished", "--before", page["older"])
    assert len({row["id"] for row in [*page["instances"], *rest["instances"]]}) == 3
    assert answer("list", "--query=-status:errored", "--workflow", "orders")["searched"]["rows"] is None
    assert refused("list", "--query", "staus:open tag:") == (
        "The search cannot be understood:\n"
        '  query: staus:open: There is no field "staus". Did you mean "status"? There are workflow, status, error, '
        "error-group, step, tag, id, started, finished, duration, by, system, params.PATH and output.PATH. To search "
        'for the text itself, put it in quotes: "staus:open".\n'
        "  query: tag:: A value is missing. Write it like tag:eu.\n"
    )


def test_a_list_is_filtered() -> None:
    factories.instance("errored", id="a-1", tags=["red", "blue"])
    factories.instance("paused", id="a-2", tags=["red"])
    factories.instance("complete", id="b-1", workflow="imports")
    wanted = {
        ("--status", "errored", "--status", "paused"): ["a-2", "a-1"],
        ("--status", "open"): ["a-2"],
        ("--status", "finished"): ["b-1", "a-1"],
        ("--tag", "blue"): ["a-1"],
        ("--q", "a"): ["a-2", "a-1"],
        ("--q", "A-1"): ["a-1"],
        ("--workflow", "imports"): ["b-1"],
        ("--workflow", "imports", "--tag", "red"): [],
    }
    found = {flags: [row["id"] for row in answer("list", *flags)["instances"]] for flags in wanted}
    assert found == wanted


def test_a_list_is_aligned_says_why_and_fits_80_columns() -> None:
    factories.retrying()
    factories.instance("paused", id="0193f2c4-7c1e-7000-8000-000000000000", workflow="a-rather-long-name")
    first, second, third = run("list").splitlines()
    assert first == "paused   2 m ago  a-rather-long-name/0193f2c4-7c1e-7000-8000-000000000000  by li"
    assert second.startswith("waiting  2 m ago  orders/order-")
    assert third.startswith("         attempt 4 of 5 in 1 m 3")
    assert max(len(line) for line in run("list").splitlines()) <= 80


def test_a_list_reads_no_values_and_asks_a_fixed_number_of_questions(
    django_assert_max_num_queries: Any,
) -> None:
    for _ in range(20):
        factories.retrying()
    with django_assert_max_num_queries(10) as asked:
        run("list")
    assert not any('"params"' in query["sql"] for query in asked.captured_queries)


def test_workflows_are_listed_with_their_counts() -> None:
    factories.instance("queued", workflow="tick")
    factories.instance("complete", workflow="tick")
    factories.instance("complete", workflow="gone")
    found = {one["name"]: one for one in answer("list", "workflows")["workflows"]}
    assert set(found) == {*workflows, "gone"}
    assert {status: n for status, n in found["tick"]["counts"].items() if n} == {"queued": 1, "complete": 1}
    assert [found[name]["is_declared"] for name in ("tick", "gone")] == [True, False]
    (line,) = (line for line in run("list", "workflows").splitlines() if line.startswith("gone"))
    assert line.split() == ["gone", "0", "1", "0", "0", "not", "in", "the", "code"]


def test_an_empty_list_says_so() -> None:
    assert run("list") == "No instances match.\n"
    found = answer("list")
    assert (found["instances"], found["older"]) == ([], None)


# Showing


def test_show_says_why_and_what_happened() -> None:
    found = factories.retrying()
    factories.event(found, "order-approved")
    factories.deed(found, "pause", reason="for lunch")
    factories.child(found, "complete", id="child")
    said = run("show", str(found))
    assert "Step 2 “charge_card” failed 3 times" in said
    assert "attempt 3 errored after 800 ms: TimeoutError: no answer" in said
    for head in ("STEPS", "EVENTS", "CHILDREN", "AUDIT"):
        assert f"\n{head}\n" in said
    assert "invoices/child" in said
    assert "order-approved" in said
    assert "for lunch" in said
    assert max(len(line) for line in said.splitlines()) <= 80


def test_show_prints_a_note_in_full_with_its_lines() -> None:
    found = factories.instance("queued")
    found.add_note("Called \x1b[31m the shop:\n\n" + "they call back " * 30 + "tomorrow", by="ana")
    said = run("show", str(found))
    lines = said[said.index("AUDIT\n") :].splitlines()[1:]
    assert lines[0].split()[-2:] == ["ana", "note"]
    assert lines[1:3] == ["  Called ·[31m the shop:", "  "]
    assert " ".join(line.strip() for line in lines[3:]) == "they call back " * 30 + "tomorrow"


def test_show_as_json_has_these_keys() -> None:
    found = factories.retrying()
    factories.event(found)
    factories.deed(found, "pause")
    shown = answer("show", str(found))
    assert set(shown) == {
        *("instance", "steps", "steps_total", "events", "events_total", "children", "children_total"),
        *("generations", "audit", "now"),
    }
    assert shown["instance"]["why"].startswith("Step 2 “charge_card” failed 3 times")
    reserve, charge = shown["steps"]
    assert (charge["status"], len(charge["attempts"])) == ("waiting", 3)
    assert charge["attempts"][0]["error"] == {
        "type": "TimeoutError",
        "message": "no answer from the card service after 5 s",
    }
    assert "output" not in reserve
    assert "payload" not in shown["events"][0]


def test_full_adds_outputs_and_tracebacks_but_nothing_sensitive() -> None:
    found = factories.retrying()
    Step.objects.filter(instance_id=found.key, seq=1).update(sensitive=True)
    factories.event(found, payload="s3cr3t-not")
    shown = answer("show", str(found), "--full")
    assert "Traceback" in shown["steps"][1]["attempts"][0]["error"]["traceback"]
    assert shown["steps"][0]["output"] is None
    assert shown["events"][0]["payload"] == "s3cr3t-not"
    said = run("show", str(found), "--full")
    assert "(a sensitive value)" in said
    assert "h_81" not in said
    assert "provider.py" in said


def test_what_a_step_says_cannot_move_the_cursor() -> None:
    error = {"type": "Oh", "message": "\x1b[2J\x1b]0;owned\x07 and\nmore"}
    found = factories.instance("errored", error=error)
    for said in (run("show", str(found)), run("list")):
        assert "·[2J·]0;owned· and more" in said
        assert "\x1b" not in said


def test_show_folds_the_items_of_a_map_that_went_well() -> None:
    found = factories.instance("errored", id="a")
    map_ = factories.step(found, "resize", kind="map", status="errored")
    for count, status in enumerate(["complete", "errored", "complete", "cancelled"], 1):
        item = factories.step(found, "resize", parent=map_.seq, count=count, status=status)
        factories.attempt(item, status)
    said = run("show", "orders/a")
    assert "of its items 1 cancelled, 2 complete, 1 errored" in said
    assert ("resize[1]" in said, "resize[0]" in said, "resize[3]" in said) == (True, False, False)
    assert "resize[0]" in run("show", "orders/a", "--full")
    assert len(answer("show", "orders/a")["steps"]) == 5


def test_show_is_bounded() -> None:
    found = factories.instance("running")
    for number in range(5):
        factories.step(found, f"step-{number}")
    shown = answer("show", str(found), "--limit", "2")
    assert ([step["name"] for step in shown["steps"]], shown["steps_total"]) == (["step-3", "step-4"], 5)
    assert "STEPS (the newest 2 of 5; --limit shows more)" in run("show", str(found), "--limit", "2")


def test_nested_steps_and_items_lie_beneath_theirs() -> None:
    found = factories.instance("running")
    factories.step(found, "letters", "running", kind="map")
    factories.step(found, "letters", "running", parent=1)
    factories.step(found, "outer", "running")
    factories.step(found, "inner", parent=3)
    said = run("show", str(found))
    rows = [line for line in said.splitlines() if line[:1].isdigit()]
    assert [row.split()[-1] for row in rows] == ["letters", "letters[0]", "outer", "inner"]
    at = [row.index(row.split()[-1]) for row in rows]
    assert (at[1] - at[0], at[2] - at[0], at[3] - at[0]) == (2, 0, 2)


def test_a_missing_instance_is_refused() -> None:
    for words in (["show"], ["pause"], ["events", "list"], ["terminate", "--reason", "x"]):
        assert refused(*words, "tick/none") == (
            'Workflow "tick" has no instance "none". Ids are unique per workflow.\n'
        )


# Steering


def test_pause_and_resume_leave_rows_in_the_trail() -> None:
    instance = workflows["tick"].start(id="a")
    assert run("pause", "tick/a", "--by", "oli", "--reason", "wait") == "tick/a is paused.\n"
    assert run("pause", "tick/a", "--by", "oli") == "Nothing has changed: tick/a is paused.\n"
    assert answer("resume", "tick/a", "--by", "oli")["instance"]["status"] == "queued"
    assert answer("resume", "tick/a", "--by", "oli")["has_changed"] is False
    assert instance.refresh().status == "queued"
    trail = Audit.objects.order_by("key").values_list("verb", "actor", "reason", "before", "after")
    assert list(trail) == [
        ("pause", "oli", "wait", "queued", "paused"),
        ("resume", "oli", "", "paused", "queued"),
    ]


def test_terminate_ends_it_and_a_finished_one_is_refused() -> None:
    workflows["tick"].start(id="a")
    assert run("terminate", "tick/a", "--reason", "wrong month") == "tick/a is terminated.\n"
    for word in ("pause", "resume"):
        assert run(word, "tick/a") == "Nothing has changed: tick/a is terminated.\n"
        assert answer(word, "tick/a")["has_changed"] is False
    finished = {
        "accept-code": "accepting other code is no longer possible",
    }
    for word, why in finished.items():
        assert why in refused(word, "tick/a")
    assert "terminating it is no longer possible" in refused("terminate", "tick/a", "--reason", "again")
    assert "sending an event is no longer possible" in refused("events", "send", "tick/a", "x")
    assert [row.verb for row in Audit.objects.all()] == ["terminate"]


def test_terminate_with_rollback_says_what_comes_first() -> None:
    found = factories.instance("waiting", wake_at=timezone.now() + timedelta(hours=1))
    step = factories.step(found, "charge", options={"rollback": {"max_attempts": 3}})
    factories.attempt(step)
    said = run("terminate", str(found), "--rollback", "--reason", "undo it")
    assert said == f"{found} is queued: its steps are rolled back first, then it is terminated.\n"
    assert Audit.objects.get().data == {"rollback": True}


def test_a_rollback_is_retried_only_where_one_failed() -> None:
    found = factories.instance("errored")
    assert "Only a rollback that failed can be retried" in refused("retry-rollback", str(found))
    Instance.objects.filter(key=found.key).update(rollback="failed")
    assert "then it is errored" in run("retry-rollback", str(found))


def test_other_code_is_accepted() -> None:
    found = workflows["tick"].start(id="a")
    Instance.objects.filter(key=found.key).update(code="other")
    assert answer("accept-code", "tick/a")["has_changed"] is True
    assert found.refresh().code == workflows["tick"].fingerprint


# Restarting and deleting


def test_a_restart_is_previewed_and_keeps_what_came_before_its_step() -> None:
    found = factories.instance("errored", id="a")
    first = factories.step(found, "reserve")
    factories.attempt(first, "errored")
    for step in (first, factories.step(found, "charge"), factories.step(found, "ship")):
        factories.attempt(step)
    where = ("restart", "orders/a", "--from-step", "charge")
    said = run(*where, "--preview")
    assert said.startswith("orders/a would start generation 2.\n\nKEPT\n1  complete  do ")
    assert 'RUNS AGAIN, with its side effects\n2  complete  do "charge"\n3  complete  do "ship"\n' in said
    assert said.endswith("0 children would be terminated.\nNothing has changed.\n")
    plan = answer(*where, "--preview")
    assert [[one["name"] for one in plan[part]] for part in ("keeps", "runs_again")] == [
        ["reserve"],
        ["charge", "ship"],
    ]
    assert found.refresh().generation == 1
    assert (
        run(*where, "--by", "oli", "--reason", "paid by now") == "orders/a is queued: generation 2 starts.\n"
    )
    assert [step["kept_from"] for step in answer("show", "orders/a")["steps"]] == [1]
    said = run("show", "orders/a")
    assert "kept from generation 1" in said
    assert "attempt 1 errored after 800 ms" in said
    assert Audit.objects.values_list("verb", "actor", "reason").get() == ("restart", "oli", "paid by now")


def test_an_earlier_generation_is_shown_as_it_stood() -> None:
    found = factories.instance("errored", id="a")
    factories.attempt(factories.step(found, "reserve"))
    run("restart", "orders/a", "--reason", "again")
    earlier = answer("show", "orders/a", "--generation", "1")
    assert earlier["instance"]["status"] == "errored"
    assert earlier["instance"]["why"].startswith("Failed at step")
    assert [step["name"] for step in earlier["steps"]] == ["reserve"]
    assert answer("show", "orders/a")["steps"] == []
    assert "EARLIER GENERATIONS" in run("show", "orders/a")
    assert "has no generation 3. The current one is 2." in refused("show", "orders/a", "--generation", "3")


def test_why_the_engine_paused_an_instance_is_its_error_too_until_it_goes_on() -> None:
    reason = {
        "type": "NonDeterminismError",
        "message": "It does not fit.",
        "traceback": "NonDeterminismError",
    }
    said = {"type": "NonDeterminismError", "message": "It does not fit."}
    factories.instance("paused", id="a", pause_reason=reason)
    about = answer("show", "orders/a")["instance"]
    assert (about["error"], about["pause_reason"]) == (said, said)
    assert "Paused by the engine: NonDeterminismError: It does not fit." in run("show", "orders/a")
    run("terminate", "orders/a", "--reason", "no")
    about = answer("show", "orders/a")["instance"]
    assert (about["status"], about["error"], about["pause_reason"]) == ("terminated", said, said)
    run("restart", "orders/a", "--reason", "again")
    about, (earlier,) = (shape := answer("show", "orders/a"))["instance"], shape["generations"]
    assert (about["error"], about["pause_reason"]) == (None, None)
    assert (earlier["status"], earlier["error"], earlier["pause_reason"]) == ("terminated", said, said)
    about = answer("show", "orders/a", "--generation", "1")["instance"]
    assert (about["error"], about["pause_reason"]) == (said, said)


def test_an_instance_that_was_never_restarted_has_no_other_generation() -> None:
    factories.instance("errored", id="a")
    assert answer("show", "orders/a", "--generation", "1")["instance"]["status"] == "errored"
    assert "has no generation 7. The current one is 1." in refused("show", "orders/a", "--generation", "7")


def test_a_list_counts_the_attempts_of_the_present_generation_only() -> None:
    """Also next to an instance in its first generation."""
    again = factories.instance("errored", id="again")
    lost = factories.step(again, "charge", "errored")
    factories.attempt(lost, "lost")
    factories.attempt(lost, "lost")
    run("restart", "orders/again", "--reason", "again")
    fresh = factories.instance("queued", id="fresh")
    due = factories.ago(hours=-1)
    for instance in (again.refresh(), fresh):
        Instance.objects.filter(key=instance.key).update(
            status="waiting", waiting_for="retry", wake_at=due, started_at=instance.created_at, fence=9
        )
        charge = factories.step(instance, "charge", "waiting", seq=1, wake_at=due)
        factories.attempt(charge, "errored")
        factories.attempt(charge, "errored")
    said = {one["id"]: one["why"].split(" in ")[0] for one in answer("list")["instances"]}
    assert said == {"fresh": "attempt 3 of 5", "again": "attempt 3 of 5"}


def test_nothing_of_the_present_generation_is_said_of_an_earlier_one() -> None:
    found = factories.instance("running", id="a", deadline_at=factories.ago(hours=-1), code="old")
    factories.child(found, "complete", name="bill", id="kept")
    factories.step(found, "charge", "running")
    run("restart", "orders/a", "--from-step", "charge", "--by", "ana", "--reason", "again")
    Instance.objects.filter(key=found.key).update(
        status="terminated", finished_at=timezone.now(), wake_at=None, owner=None
    )
    factories.deed(found, "terminate", "li", "enough")
    first, now = answer("show", "orders/a", "--generation", "1"), answer("show", "orders/a")
    assert (first["instance"]["deadline_at"], now["instance"]["deadline_at"] is None) == (None, False)
    assert first["instance"]["why"] == "It was running when generation 2 began, which ended it."
    assert now["instance"]["why"].startswith("Terminated by li ")
    assert (
        [child["id"] for child in first["children"]] == [child["id"] for child in now["children"]] == ["kept"]
    )


def test_a_restart_from_an_unknown_step_changes_nothing() -> None:
    found = factories.instance("complete", id="a")
    factories.attempt(factories.step(found, "reserve"))
    said = refused("restart", "orders/a", "--from-step", "reserv", "--reason", "x")
    assert 'Did you mean do "reserve"?' in said
    assert found.refresh().generation == 1


def test_delete_takes_the_finished_and_leaves_the_trail() -> None:
    factories.instance("complete", id="a")
    factories.instance("paused", id="b")
    assert run("delete", "orders/a", "--reason", "gdpr") == "orders/a is deleted. Its audit trail stays.\n"
    assert "Only a finished instance can be deleted" in refused("delete", "orders/b", "--reason", "x")
    assert [row.id for row in Instance.objects.all()] == ["b"]
    (entry,) = Audit.objects.filter(instance_id="a")
    assert (entry.verb, entry.reason) == ("delete", "gdpr")


# Schedules


def schedule(**given: Any) -> ScheduleRow:
    fields = {
        "workflow": "tick",
        "name": "mornings",
        "expression": "0 9 * * 1-5",
        "timezone": "Europe/Berlin",
    }
    soon = timezone.now() + timedelta(hours=3, minutes=1)
    return ScheduleRow.objects.create(**({**fields, "next_at": soon} | given))


def test_schedules_are_listed_with_when_they_fire() -> None:
    row = schedule()
    schedule(name="old", is_declared=False, next_at=None, last_error="It takes other params by now.")
    first, second = answer("schedules", "list", "--workflow", "tick")["schedules"]
    assert (first["name"], len(first["upcoming"]), second["upcoming"]) == ("mornings", 5, [])
    assert first["upcoming"][0] == row.next_at.isoformat()  # type: ignore[union-attr]
    head, mornings, old, error = run("schedules").splitlines()
    assert head.split() == ["NEXT", "LAST", "WORKFLOW", "SCHEDULE"]
    assert mornings == "in 3 h           -     tick      mornings (0 9 * * 1-5 Europe/Berlin)"
    assert old.startswith("not in the code  -     tick      old")
    assert error == "    last run: It takes other params by now."


def test_schedules_are_paused_resumed_and_run() -> None:
    schedule()
    assert (
        run("schedules", "pause", "tick", "mornings", "--by", "oli") == "Schedule tick: mornings is paused.\n"
    )
    assert run("schedules", "list").splitlines()[1].startswith("paused")
    assert answer("schedules", "resume", "tick", "mornings")["schedule"]["paused_at"] is None
    started = answer("schedules", "run", "tick", "mornings", "--by", "oli")["instance"]
    assert started["started_by"] == "schedule mornings"
    assert 'has no schedule "evenings"' in refused("schedules", "run", "tick", "evenings")
    assert "oli" in Audit.objects.values_list("actor", flat=True)


# Events and answers


def test_an_event_is_sent_once_under_its_key() -> None:
    workflows["listen-for"].start(["go"], id="a")
    for _ in range(2):
        said = run("events", "send", "listen-for/a", "go", '{"n": 1}', "--dedup-key", "k", "--by", "oli")
        assert said == "Event go was sent to listen-for/a.\n"
    assert Event.objects.values_list("type", "payload", "sent_by").get() == ("go", {"n": 1}, "oli")
    assert "with dedup key" in refused("events", "send", "listen-for/a", "go", "2", "--dedup-key", "k")
    (event,) = answer("events", "list", "listen-for/a", "--full")["events"]
    assert (event["type"], event["payload"], event["state"]) == ("go", {"n": 1}, "buffered")
    assert answer("events", "list", "listen-for/a", "--state", "consumed")["events"] == []
    assert "buffered  oli  go" in run("events", "list", "listen-for/a")


def test_a_declared_event_is_checked() -> None:
    workflows["process-order"].start(json.loads(ORDER), id="a")
    said = refused("events", "send", "process-order/a", "order-approved", '{"approved": "perhaps"}')
    assert said.splitlines()[0] == "The payload does not match the declared type:"
    assert "  approved: " in said
    assert not Event.objects.exists()


def test_a_request_is_answered_by_whom_it_was_put_to() -> None:
    found = factories.instance("waiting")
    factories.request(found, assignees=("ana",))
    User.objects.create_user("bo")
    User.objects.create_user("ana")
    given = '{"refund": true, "amount": 5}'
    assert "cannot be answered by bo" in refused("answer", str(found), "decide", given, "--by", "bo")
    wrong = json.loads(refused("answer", str(found), "decide", '{"amount": -1}', "--by", "ana", "--json"))
    assert sorted(one["path"] for one in wrong["error"]["errors"]) == ["amount", "refund"]
    said = run("answer", str(found), "1", given, "--by", "ana", "--comment", "fine")
    assert said == f"Request 1 of {found} is answered.\n"
    assert "was answered by ana" in refused("answer", str(found), "decide", given, "--by", "cron")
    assert [(row.verb, row.actor) for row in Audit.objects.all()] == [("answer", "ana")]


def test_an_unknown_request_names_those_that_wait() -> None:
    found = factories.instance("waiting")
    factories.request(found)
    assert 'Waiting for an answer: "decide"' in refused("answer", str(found), "decde", "1")


# Calling it


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "required: SUBCOMMAND"),
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        (["show", "tick"], '"tick" is not an instance. Write WORKFLOW/ID'),
        (["terminate", "tick/a"], "required: --reason"),
        (["terminate", "tick/a", "--reason", " "], "This action requires a reason: add --reason."),
        (
            ["list", "--status", "done"],
            "(choose from 'open', 'finished', 'queued', 'running', 'waiting', 'waiting_for",
        ),
        (["show", "tick/\udcff"], r'"tick/\udcff" is not text in UTF-8.'),
        (["list", "--q", "\udcff"], r'"\udcff" is not text in UTF-8.'),
        (["pause", "tick/a", "--by", "\udcff"], r'"\udcff" is not text in UTF-8.'),
        (["start", "tick", "{}", "--file", "/"], '"/" is not a file'),
        (["list", "--limit", "1001"], '"1001" is more than 1,000'),
        (["start", "tick", "--retention", "7d"], '"7d" is not a rule'),
        (["list", "--before", "x"], '"x" is not a key'),
        (["list", "--sort", "id"], '"id" is not an order. There are started, -started, finished, -finished'),
        (["restart", "tick/a", "--reason", "x", "--count", "0"], '"0" is not a number from 1 on'),
        (["restart", "tick/a"], "one of the arguments --reason --preview is required"),
        (["delete", "tick/a"], "required: --reason"),
        (["start", "tick", "{}", "--file", "x"], '"x" is not a file'),
        (["start", "tick", "{}", "--file", __file__], "not allowed with"),
        (["events"], "required: SUBCOMMAND"),
        (["schedules", "frobnicate"], "invalid choice: 'frobnicate'"),
    ],
)
def test_a_wrong_call_ends_with_two(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert said in misused(capsys, *arguments)


def test_a_program_that_calls_it_gets_an_exception() -> None:
    with pytest.raises(CommandError, match='has no instance "none"') as caught:
        run("show", "tick/none")
    assert caught.value.returncode == 1


def test_colour_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    factories.instance("errored")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    call_command("workflow", "--force-color", "list", stdout=screen)
    assert "\x1b[" in screen.getvalue()
    assert "\x1b" not in run("--force-color", "list")


@pytest.mark.django_db(transaction=True)
def test_manage_py_writes_json_on_the_standard_error_and_ends_with_one() -> None:
    at = connection.get_connection_params()
    url = f"postgresql://{at['user']}:{at.get('password') or ''}@/{at['dbname']}?host={at['host']}"
    if "port" in at:
        url += f"&port={at['port']}"
    workflows["tick"].start(id="a")
    done = subprocess.run(
        [sys.executable, "manage.py", "workflow", "terminate", "tick/b", "--reason", "x", "--json"],
        cwd=PROJECT,
        env=os.environ | {"DATABASE_URL": url, "REPRISE_APPS": "tests.sample"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert json.loads(done.stderr)["error"]["type"] == "InstanceNotFoundError"
