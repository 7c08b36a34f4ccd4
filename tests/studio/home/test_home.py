"""Home: a sentence and groups about all instances, however many there are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from engine import pauses, workflows
from engine.models import Instance, ScheduleRow
from engine.status import usual
from engine.status.failures import failing as failing_now
from engine.status.search import workflow_names
from studio.home import details
from studio.home.attention import attention as read
from studio.home.headline import headline
from tests.studio import factories
from tests.studio.home.conftest import Home

pytestmark = pytest.mark.django_db

CODE_CHANGED = {"type": "CodeChangedError", "message": "The code has changed.", "details": {}}
NO_MATCH = {"type": "NonDeterminismError", "message": "Step 4 is now a sleep.", "details": {}}


def failed(count: int, *, workflow: str = "orders", step: str = "charge_card", **given: Any) -> str:
    """Make instances that failed with one error in the last seconds, and return its fingerprint."""
    group = factories.failure(workflow, step=step)
    now = timezone.now()
    Instance.objects.bulk_create(
        Instance(
            **{
                "workflow": workflow,
                "id": f"failed-{step}-{n}",
                "status": "errored",
                "params": {},
                "error": factories.FAILURE,
                "fingerprint": group.fingerprint,
                "created_at": now,
                "started_at": now,
                "finished_at": now - timedelta(seconds=count - n),
                **given,
            }
        )
        for n in range(count)
    )
    return group.fingerprint


def test_quiet_home_says_when_something_failed_last_and_has_no_list(operator: Client) -> None:
    factories.workers(["orders"], count=3)
    failed(2, finished_at=factories.ago(days=3))
    page = Home(operator)
    assert page.sentence == "Nothing needs you. Last failure 3 d ago."
    assert page.facts == ["all 3 workers are up"]
    assert page.look == "complete"
    assert page.is_quiet
    assert page.rows == []


def test_quiet_home_without_any_failure_says_no_more(operator: Client) -> None:
    factories.workers(["orders"])
    factories.instance("complete")
    page = Home(operator)
    assert (page.sentence, page.facts) == ("Nothing needs you.", ["the only worker is up"])


@pytest.mark.usefixtures("restored_registry")
def test_without_workflows_home_shows_how_to_write_one(operator: Client) -> None:
    workflows._workflows.clear()
    factories.workers(["orders"])
    page = Home(operator)
    assert page.sentence == "Write your first workflow."
    assert "No workflows yet" in page.html
    assert "async def hello(step: WorkflowStep, name: str)" in page.html


def test_workers_are_always_named(operator: Client) -> None:
    page = Home(operator)
    assert page.sentence == "Nothing needs you, but no worker is running, so no workflow runs."
    assert (page.look, page.facts) == ("retrying", ["no worker is running"])
    factories.worker(["orders"], role="cluster", started_at=factories.ago(seconds=50))
    page = Home(operator)
    assert (page.sentence, page.facts) == ("Nothing needs you.", ["workers are starting"])


def test_kinds_stand_in_the_order_of_severity(operator: Client) -> None:
    factories.workers(["orders", "imports"], count=2)
    factories.request(factories.instance("waiting"), wake_at=factories.ago(hours=-5))
    schedule("orders")
    factories.retrying()
    long_step("imports")
    factories.request(factories.instance("waiting"), name="soon", wake_at=factories.ago(minutes=-30))
    factories.instance("paused", pause_reason=NO_MATCH)
    failed(3)
    page = Home(operator)
    assert [row.state for row in page.rows] == [
        "errored",
        "paused",
        "approval",
        "running",
        "retrying",
        "overdue",
        "approval",
    ]
    assert page.sentence.startswith("3 instances of orders have failed in one step since ")
    words = [fact.split(" until ")[0] for fact in page.facts]
    assert words == [
        "1 is paused by the engine",
        "2 requests wait for you",
        "1 runs far longer than usual",
        "1 more backs off,".rstrip(","),
        "1 schedule is overdue",
        "all 2 workers are up",
    ]


def schedule(workflow: str) -> None:
    ScheduleRow.objects.create(
        workflow=workflow,
        name="nightly",
        expression="0 3 * * *",
        timezone="UTC",
        next_at=factories.ago(minutes=9),
    )


def long_step(workflow: str) -> Instance:
    """Make a step that has run for 41 minutes, where the last ones took less than a second."""
    for _ in range(usual.LEAST_KNOWN):
        factories.step(factories.instance("complete", workflow=workflow), "parse")
    found = factories.instance("running", workflow=workflow, created_at=factories.ago(minutes=41, seconds=1))
    factories.step(found, "parse", "running")
    return found


def test_a_step_that_runs_far_longer_than_usual_says_how_long(operator: Client) -> None:
    factories.workers(["imports"])
    found = long_step("imports")
    page = Home(operator)
    (row,) = page.rows
    assert row.title == "parse has been running for 41 min; usually 800 ms at most"
    assert row.line == f"imports · {found.id}"
    assert page.sentence.startswith(
        "1 instance of imports has been in one step for far longer than usual since "
    )


def test_what_no_worker_takes_is_one_row_for_all_workflows(operator: Client) -> None:
    factories.workers(["other"])
    for name in ("orders", "orders", "refunds"):
        factories.instance(workflow=name, wake_at=factories.ago(minutes=3))
    factories.instance(workflow="just-now")
    factories.instance(workflow="other", wake_at=factories.ago(minutes=3))
    page = Home(operator)
    (row,) = page.rows
    assert (row.count, row.state, row.title) == ("3", "queued", "No worker serves 2 workflows")
    assert row.line == "orders 2 · refunds 1 · due, and not taken"
    assert row.href == "/workers/"
    assert page.sentence.startswith("No worker serves 2 workflows, and 3 instances have waited since ")


def test_what_a_pause_holds_does_not_lack_a_worker(operator: Client) -> None:
    factories.workers(["other"])
    factories.instance(workflow="orders", wake_at=factories.ago(minutes=3))
    pauses.pause("orders", by="ana", reason="the provider is down")
    assert Home(operator).is_quiet


def test_without_any_worker_the_row_says_so(operator: Client) -> None:
    factories.instance(wake_at=factories.ago(minutes=3))
    assert [row.title for row in Home(operator).rows] == ["No worker is running"]


def test_pauses_of_the_engine_are_grouped_by_their_reason(operator: Client) -> None:
    factories.workers(["orders"])
    for name in ("orders", "refunds"):
        factories.instance("paused", workflow=name, pause_reason=CODE_CHANGED)
    for number in (4, 7):
        factories.instance("paused", pause_reason={**NO_MATCH, "message": f"Step {number} is now a sleep."})
    factories.instance("paused")  # by a person
    rows = Home(operator).rows
    assert sorted((row.count, row.title, row.line) for row in rows) == [
        ("2", "Step ‹n› is now a sleep.", "orders 2 · paused by the engine"),
        ("2", "The code has changed", "orders 1 · refunds 1 · paused until the new code is accepted"),
    ]
    for row in rows:
        assert operator.get(row.href).status_code == 200


def test_requests_name_who_may_answer_and_what_expires_first(operator: Client) -> None:
    factories.workers(["orders"])
    oli = User.objects.get(username="oli")
    for hours, names in ((5, ["oli"]), (2, ["oli"]), (9, ["zoe"])):
        factories.request(factories.instance("waiting"), assignees=names, wake_at=factories.ago(hours=-hours))
    page = Home(operator)
    (row,) = page.rows
    assert (row.count, row.state, row.verb) == ("3", "approval", "Answer")
    assert row.title == "Refund 1,240 € to ACME? · and 2 more"
    assert row.line.startswith("orders 3 · 2 wait for you · the first expires at ")
    assert "expires in 1 h 59 m" in row.since
    assert operator.get(row.href).status_code == 200
    assert page.sentence.startswith("3 requests have waited for an answer since ")
    failed(1)
    assert Home(operator).facts[0] == "3 requests wait, 2 for you"
    assert [row.count for row in Home(operator, "?who=mine").rows] == ["2"]
    oli.groups.clear()


def test_what_only_others_may_answer_is_opened(operator: Client) -> None:
    factories.request(factories.instance("waiting"), assignees=["zoe"])
    page = Home(operator)
    (row,) = page.rows
    assert (row.verb, row.href.startswith("/approvals/?box=open&r=")) == ("Open", True)
    assert Home(operator, "?who=mine").rows == []


def test_failures_from_before_there_were_groups_are_not_lost(operator: Client) -> None:
    factories.instance("errored")
    factories.retrying()
    page = Home(operator)
    assert [(row.state, row.title) for row in page.rows] == [
        ("errored", "Failed before errors had groups"),
        ("retrying", "The same error, backing off"),
    ]
    for row in page.rows:
        assert operator.get(row.href).status_code == 200


def test_a_count_that_was_stopped_says_so(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failing_now, "CAP", 5)
    monkeypatch.setattr("studio.home.failing.CAP", 5)
    failed(12)
    page = Home(operator)
    assert page.rows[0].count == "4+"
    assert page.sentence.startswith("4+ instances of orders have failed")


def test_a_workflow_that_may_not_be_seen_is_in_no_row_and_no_number(admin_user: User) -> None:
    """Every query takes the workflows that may be seen."""
    for name in ("orders", "secret"):
        failed(3, workflow=name)
        factories.instance("paused", workflow=name, pause_reason=CODE_CHANGED)
        factories.request(factories.instance("waiting", workflow=name))
        factories.instance("waiting", workflow=name, waiting_for="retry", wake_at=factories.ago(minutes=-5))
        factories.instance(workflow=name, wake_at=factories.ago(minutes=3))
        schedule(name)
        long_step(name)
    found = read(["orders"], admin_user)
    shares = [(group.kind, share.workflow) for group in found.everything for share in group.shares]
    assert sorted(shares) == [
        (kind, "orders")
        for kind in ("approval", "errored", "overdue", "paused", "retrying", "stuck", "unserved")
    ]
    assert read([], admin_user).everything == ()


def test_an_unknown_choice_shows_everything_and_says_that_it_was_ignored(operator: Client) -> None:
    failed(1)
    page = Home(operator, "?who=them")
    assert len(page.rows) == 1
    assert "<bdi>who=them</bdi>" in page.html
    assert "who=them" not in page.html[page.html.index('id="live"') :]


def test_what_cannot_be_read_does_not_take_the_page_down(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OperationalError("the index is broken")

    monkeypatch.setattr("studio.home.live.attention", fail)
    factories.instance("complete")
    page = Home(operator)
    assert page.sentence == "What needs you could not be read."
    assert "Could not read what needs you. Request <code>" in page.html
    assert '<tr id="w-' in page.html


def test_the_headline_of_what_could_not_be_read_has_no_facts() -> None:
    assert headline(None).facts == ()


def test_home_asks_as_much_for_many_as_for_few(admin_user: User) -> None:
    def queries() -> int:
        names = workflow_names()
        with CaptureQueriesContext(connection) as asked:
            read(names, admin_user)
        return len(asked)

    def some(workflow: str) -> None:
        for step in ("charge_card", "ship"):
            failed(details.LEAST, workflow=workflow, step=step)
        for _ in range(2):
            factories.instance("paused", workflow=workflow, pause_reason=CODE_CHANGED)
            factories.request(factories.instance("waiting", workflow=workflow))
            factories.instance(
                "waiting", workflow=workflow, waiting_for="retry", wake_at=factories.ago(minutes=-5)
            )
            factories.instance(workflow=workflow, wake_at=factories.ago(minutes=3))
        long_step(workflow)

    some("orders")
    few = queries()
    for n in range(5):
        some(f"flow-{n}")
    assert queries() == few
    assert few <= 27


def test_home_stays_quick_beside_many_instances(admin_user: User) -> None:
    """Whatever there is, each answer comes from an index that holds little else."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_instance"
            " (workflow, id, status, waiting_for, params, wake_at, finished_at, output, error)"
            " SELECT 'flow-' || n % 3, 'b-' || n,"
            " CASE n % 10 WHEN 0 THEN 'queued' WHEN 1 THEN 'errored' ELSE 'complete' END, '', '{}',"
            " CASE WHEN n % 10 = 0 THEN now() END,"
            " CASE WHEN n % 10 > 0 THEN now() - n * interval '1 hour' END,"
            " CASE WHEN n % 10 > 1 THEN '1'::json END, CASE WHEN n % 10 = 1 THEN '{\"type\": \"Odd\"}'::json END"
            " FROM generate_series(1, 20000) n"
        )
    failed(50)
    factories.retrying()
    factories.instance("paused", pause_reason=CODE_CHANGED)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    with CaptureQueriesContext(connection) as asked:
        found = read(workflow_names(), admin_user)
    assert sum(group.count for group in found.everything) > 50
    plans = dict[str, str]()
    with connection.cursor() as cursor:
        for query in asked:
            # At most 200 keys, joined with the table: a small one is read faster as a whole.
            if "engine_instance" in query["sql"] and "FROM found JOIN" not in query["sql"]:
                cursor.execute(f"EXPLAIN {query['sql']}")
                plans[query["sql"]] = "\n".join(row[0] for row in cursor.fetchall())
    assert any("engine_instance_failed" in plan for plan in plans.values())
    assert any("engine_instance_fingerprint" in plan for plan in plans.values())
    for statement, plan in plans.items():
        assert "Seq Scan on engine_instance" not in plan, (statement, plan)
