"""Retention: finished instances are deleted, in small batches; nothing unfinished or needed is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from engine import InvalidValueError, WorkflowStep, workflow, workflows
from engine.declare.registry import Workflow
from engine.models import Attempt, Audit, Event, Generation, Instance, Log, Step, Waiter
from engine.steer import retention
from engine.steer.clock import ClockTimestamp, database_time
from engine.values.retention_rules import DEFAULT_RETENTION
from tests.integration.cuts import cut_everywhere
from tests.integration.rows import attempt_of, event_of, row_of, step_of
from tests.integration.sessions import in_background

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("own_registry")]

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)
FINAL = ("complete", "errored", "terminated")


def declare(**options: Any) -> Workflow[Any, Any]:
    """Declare the only workflow there is: a sweep looks for each."""
    workflows._workflows.clear()

    @workflow("sale", **options)
    async def handler(step: WorkflowStep) -> None: ...

    return handler


def ended(id: str, *, days: float, status: str = "complete", **values: Any) -> Instance:
    """Write an instance that ended some days ago, and began an hour before."""
    at = NOW - days * DAY
    given = {"workflow": "sale", "id": id, "status": status, "wake_at": None, "finished_at": at}
    return row_of(**{**given, "created_at": at - timedelta(hours=1), **values})


def left() -> list[str]:
    return sorted(Instance.objects.values_list("id", flat=True))


def sweep(**options: Any) -> int:
    return retention.sweep(now=NOW, **options)


def test_each_status_is_kept_for_its_own_time() -> None:
    declare(retention={"complete": "7d", "terminated": None})
    for status in FINAL:
        for days in (6, 8, 89, 91, 360):
            ended(f"{status}-{days}", days=days, status=status)
    assert sweep() == 6
    kept = ["complete-6", *(f"errored-{days}" for days in (6, 8, 89))]
    assert left() == sorted([*kept, *(f"terminated-{days}" for days in (6, 8, 89, 91, 360))])
    assert sweep() == 0


def test_what_is_not_finished_is_kept_however_old_it_is() -> None:
    declare(retention=dict.fromkeys(FINAL, 0))
    old = {"created_at": NOW - 400 * DAY, "workflow": "sale"}
    row_of(id="queued", **old)
    row_of(id="asleep", status="waiting", waiting_for="sleep", **old)
    row_of(id="paused", status="paused", wake_at=None, paused_at=NOW - 399 * DAY, **old)
    ended("late", days=-1, created_at=NOW - 400 * DAY)
    assert (sweep(), left()) == (0, ["asleep", "late", "paused", "queued"])


def test_an_instance_goes_with_all_that_it_recorded_and_its_trail_stays() -> None:
    sale = declare()
    before = sale.start(id="old", by="ana")
    Instance.objects.update(status="complete", wake_at=None, finished_at=ClockTimestamp())
    step_of(before, status="complete", finished_at=NOW)
    attempt_of(before, status="complete", finished_at=NOW)
    event_of(before)
    Log.objects.create(instance=before, generation=1, level="info", message="hello", at=NOW)
    Generation.objects.create(instance=before, number=1, status="errored")
    assert retention.sweep(now=database_time() + 31 * DAY) == 1
    for model in (Instance, Step, Attempt, Event, Log, Generation):
        assert not model.objects.exists(), model
    assert [*Audit.objects.order_by("key").values_list("verb", "workflow", "instance_id", "data")] == [
        ("start", "sale", "old", None),
        ("retention", "sale", "", {"complete": 1}),
    ]


def test_workflows_that_the_code_does_not_know_are_left_alone() -> None:
    declare(retention=dict.fromkeys(FINAL, 0))
    ended("theirs", days=100, workflow="gone")
    ended("own", days=100, workflow="gone", retention={"complete": 1, "errored": 1, "terminated": 1})
    assert (sweep(), left()) == (0, ["own", "theirs"])


def test_an_instance_may_have_a_rule_of_its_own() -> None:
    sale = declare(retention={"errored": "10d"})
    sale.start(id="short", retention={"complete": "1h"})
    sale.start(id="ever", retention={"complete": None})
    sale.start_many([{"id": "many", "retention": {"complete": "2 days"}}, {"id": "plain"}])
    own = dict(Instance.objects.values_list("id", "retention"))
    assert own["short"] == {"complete": 3600, "errored": 864_000, "terminated": 2_592_000}
    assert (own["ever"]["complete"], own["many"]["complete"], own["plain"]) == (None, 172_800, None)

    Instance.objects.update(status="complete", wake_at=None, finished_at=ClockTimestamp())
    later = database_time()
    assert (retention.sweep(now=later + 1.5 * DAY), left()) == (1, ["ever", "many", "plain"])
    assert (retention.sweep(now=later + 300 * DAY), left()) == (2, ["ever"])


def test_a_rule_that_is_none_is_refused_with_its_value() -> None:
    sale = declare()
    for wrong in ({"complet": "1d"}, {"complete": "soon"}, {"complete": "366d"}, "30d", {"complete": -1}):
        with pytest.raises(InvalidValueError, match="The retention cannot be stored"):
            sale.start(retention=wrong)  # type: ignore[arg-type]
    assert not Instance.objects.exists()


def test_without_a_rule_the_defaults_hold_and_none_keeps_for_ever() -> None:
    assert declare().retention == DEFAULT_RETENTION
    assert DEFAULT_RETENTION.seconds() == {
        "complete": 30 * 86_400,
        "errored": 90 * 86_400,
        "terminated": 30 * 86_400,
    }
    declare(retention=None)
    ended("old", days=364)
    assert sweep() == 0


# What is needed


@pytest.fixture
def at_once(own_registry: None) -> Workflow[Any, Any]:
    """A workflow whose instances are kept no moment."""
    return declare(retention=dict.fromkeys(FINAL, 0))


@pytest.mark.usefixtures("at_once")
def test_what_a_living_parent_or_a_waiter_may_ask_for_stays() -> None:
    parent = row_of(workflow="sale", id="parent", created_at=NOW - 400 * DAY)
    child = ended("child", days=300, parent_key=parent.key, parent_generation=1, parent_step=1)
    owing = ended("owing", days=300, notify_pending=True)
    watched = ended("watched", days=300)
    Waiter.objects.create(waiter=parent, generation=1, seq=1, instance=watched)
    ended("orphan", days=300, parent_key=0, parent_generation=1, parent_step=1)
    assert (sweep(), left()) == (1, ["child", "owing", "parent", "watched"])

    Instance.objects.filter(key=parent.key).update(status="errored", wake_at=None, finished_at=NOW + DAY)
    Instance.objects.filter(key=owing.key).update(notify_pending=False)
    Waiter.objects.all().delete()
    assert (sweep(), left()) == (3, ["parent"])
    assert not Instance.objects.filter(key=child.key).exists()


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("own", [None, {"complete": 0, "errored": 0, "terminated": 0}])
def test_one_that_is_restarted_between_the_look_and_the_deletion_stays(
    own: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    restarted = ended("again", days=300, retention=own)
    ended("over", days=300, retention=own)
    ask = retention._ask

    def restart_first(statement: str, **values: Any) -> list[tuple[Any, ...]]:
        if "FOR UPDATE" in statement:
            in_background(restarted.restart)()
        return ask(statement, **values)

    monkeypatch.setattr(retention, "_ask", restart_first)
    assert (sweep(), left()) == (1, ["again"])
    assert restarted.refresh().status == "queued"


@pytest.mark.usefixtures("at_once")
def test_a_row_that_somebody_holds_is_left_for_the_next_time() -> None:
    held = ended("held", days=300)
    ended("free", days=300)
    with transaction.atomic():
        Instance.objects.select_for_update(no_key=True).get(key=held.key)
        assert in_background(sweep)() == 1
    assert (left(), sweep()) == (["held"], 1)


# In batches


@pytest.mark.usefixtures("at_once")
def test_each_batch_is_a_transaction_and_a_row_of_the_trail() -> None:
    for number in range(7):
        ended(f"n{number}", days=300, status="errored" if number == 6 else "complete")
    assert sweep(batch=4) == 7
    assert [*Audit.objects.order_by("key").values_list("data", flat=True)] == [
        {"complete": 4},
        {"complete": 2},
        {"errored": 1},
    ]


@pytest.mark.usefixtures("at_once")
def test_it_stops_when_its_time_is_over() -> None:
    ended("old", days=300)
    assert (sweep(seconds=0), left()) == (0, ["old"])


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("after", [False, True])
def test_wherever_it_dies_instances_are_there_whole_or_not_at_all(after: bool) -> None:
    made: list[Instance] = []

    def make() -> None:
        made.append(ended(f"turn-{len(made)}", days=300))
        step_of(made[-1], status="complete", finished_at=NOW)

    def another(turn: int) -> None:
        in_background(make)()  # in a session that is not cut
        sweep()

    assert cut_everywhere(another, after=after) >= 6
    assert not Instance.objects.exists()
    assert not Step.objects.exists()
    # Each that was deleted has been reported.
    assert sum(data["complete"] for data in Audit.objects.values_list("data", flat=True)) == len(made)


@pytest.fixture
def many(own_registry: None) -> None:
    """Twenty thousand that are not finished, and a few that are."""
    declare()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_instance (workflow, id, status, params, created_at, finished_at) "
            "SELECT 'sale', 'i' || n, 'complete', 'null', %(now)s::timestamptz, %(now)s::timestamptz "
            "FROM generate_series(1, 20000) AS n",
            {"now": NOW},
        )
        cursor.execute("ANALYZE engine_instance")


@pytest.mark.usefixtures("many")
def test_looking_for_what_is_over_touches_few_rows_of_many() -> None:
    values = {"workflow": "sale", "status": "complete", "cutoff": NOW - DAY, "after": 0, "limit": 500}
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {retention._PAGE}", values)
        ((report,),) = cursor.fetchall()
        pages = []
        with connection.execute_wrapper(lambda run, sql, *rest: (pages.append(sql), run(sql, *rest))[1]):
            assert sweep() == 0
    plan = report[0]["Plan"]
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 600
    # One for each workflow and status, and one for those with rules of their own: none went on to a second page.
    assert len(pages) == 3 * len(workflows.served) + 1
