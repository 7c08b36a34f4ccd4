"""Groups of failures: what people decide about them, how they are found, and how they are counted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from engine import (
    InvalidValueError,
    StepContext,
    WorkflowStep,
    failures,
    workflow,
)
from engine.models import Audit, Failure, FailureCount, Instance
from engine.steer import failure_counts
from engine.steer.clock import database_time
from tests.stories import run_to_end
from tests.violations import violations

pytestmark = [pytest.mark.usefixtures("engine_db", "own_registry")]


@pytest.fixture(autouse=True)
def nothing_is_violated(engine_db: None) -> Iterator[None]:
    yield
    assert violations() == []


def charge(ctx: StepContext) -> None:
    raise ValueError(f"card {ctx.attempt}000 was declined")


def only_group(**options: Any) -> failures.FailureGroup:
    (found,) = failures.groups(**options).groups
    return found


# What people decide


def failing_order() -> Any:
    @workflow
    async def order(step: WorkflowStep) -> None:
        await step.do("charge", charge, max_attempts=1)

    return order


def test_a_resolved_group_is_open_again_when_it_fails_again() -> None:
    order = failing_order()
    run_to_end(order.start())
    found = only_group()
    failures.resolve(found.fingerprint, by="ana", reason="key renewed")
    assert failures.groups().groups == []
    assert failures.count_open() == 0
    resolved = only_group(state="resolved")
    assert (resolved.state, resolved.decided_by, resolved.reason) == ("resolved", "ana", "key renewed")
    run_to_end(order.start())
    again = only_group()
    assert (again.state, again.errored, failures.count_open()) == ("open", 2, 1)
    audited = Audit.objects.values_list("verb", "actor", "workflow", "before", "after", "reason")
    assert list(audited) == [("error-resolve", "ana", "order", "open", "resolved", "key renewed")]


def test_a_group_is_ignored_for_a_number_of_failures() -> None:
    order = failing_order()
    run_to_end(order.start())
    found = only_group()
    failures.ignore(found.fingerprint, count=2, by="ana", reason="known")
    run_to_end(order.start())
    assert failures.groups().groups == []
    assert only_group(state="ignored").ignored_count == 2
    run_to_end(order.start())
    assert only_group().state == "open"


def test_a_group_is_ignored_until_a_moment_or_until_it_is_reopened() -> None:
    run_to_end(failing_order().start())
    found = only_group()
    until = timezone.now() + timedelta(days=1)
    failures.ignore(found.fingerprint, until=until, by="ana", reason="known")
    assert only_group(state="ignored").ignored_until == until
    Failure.objects.update(ignored_until=timezone.now() - timedelta(seconds=1))
    assert only_group().state == "open"
    failures.ignore(found.fingerprint, by="ana", reason="forever")
    assert failures.count_open() == 0
    failures.reopen(found.fingerprint, by="ben", reason="not so")
    reopened = only_group()
    assert (reopened.state, reopened.decided_by, reopened.ignored_until) == ("open", "", None)
    assert list(Audit.objects.order_by("key").values_list("verb", "before", "after")) == [
        ("error-ignore", "open", "ignored"),
        ("error-ignore", "ignored", "ignored"),
        ("error-reopen", "ignored", "open"),
    ]


@pytest.mark.parametrize(
    "limits",
    [
        {"reason": " "},
        {"reason": "x", "count": 0},
        {"reason": "x", "until": datetime(2020, 1, 1, tzinfo=UTC)},
        {"reason": "x", "until": datetime(2999, 1, 1)},  # noqa: DTZ001
        {"reason": "x", "until": datetime(9999, 12, 31, 12, tzinfo=UTC)},
    ],
)
def test_an_invalid_decision_changes_nothing(limits: dict[str, Any]) -> None:
    run_to_end(failing_order().start())
    with pytest.raises(InvalidValueError):
        failures.ignore(only_group().fingerprint, by="ana", **limits)
    assert only_group().state == "open"
    assert Audit.objects.count() == 0


# Pages


def test_groups_are_found_by_a_text_and_page_by_page() -> None:
    async def handle(step: WorkflowStep, name: str) -> None:
        await step.do(name, charge, max_attempts=1)

    many = workflow(name="many")(handle)
    for name in ("stepa", "stepb", "stepc"):
        run_to_end(many.start(name))
    first = failures.groups(limit=2)
    second = failures.groups(limit=2, after=first.next)
    assert [group.step for group in first.groups + second.groups] == ["stepc", "stepb", "stepa"]
    assert second.next is None
    assert [group.step for group in failures.groups(query="STEPB").groups] == ["stepb"]
    assert [group.step for group in failures.groups(query=first.groups[0].fingerprint).groups] == ["stepc"]
    for query in ("%", "\0", "_", "' OR true --"):
        failures.groups(query=query)
    assert len(failures.groups(after="nonsense").groups) == 3
    assert failures.groups(workflow="other").groups == []


def test_the_newest_failure_of_a_group_is_its_sample() -> None:
    @workflow
    async def order(step: WorkflowStep) -> None:
        await step.do("charge", charge, max_attempts=2, delay=0)

    instance = run_to_end(order.start())
    trace = failures.sample_trace([only_group().fingerprint])
    assert trace is not None
    assert (trace.workflow, trace.instance_id, trace.step_seq) == ("order", instance.id, 1)
    assert (trace.attempt, trace.max_attempts) == (2, 2)
    assert trace.error["message"] == "card 2000 was declined"


# Counts


def later(**duration: float) -> datetime:
    return database_time() + timedelta(**duration)


def test_hours_that_are_over_are_counted_and_stay_when_the_instances_are_deleted() -> None:
    order = failing_order()
    for _ in range(3):
        run_to_end(order.start())
    failure_counts.count()
    assert FailureCount.objects.count() == 0
    assert failure_counts.count(now=later(hours=2)) == 1
    assert [one.attempts for one in FailureCount.objects.all()] == [3]
    assert failure_counts.count(now=later(hours=2)) == 0
    assert only_group().attempts == 3
    Instance.objects.all()[0].delete(by="ana")
    failure_counts.count(now=later(hours=3))
    assert [one.attempts for one in FailureCount.objects.all()] == [3]
    for instance in Instance.objects.all():
        instance.delete(by="ana")
    found = only_group()
    assert (found.attempts, found.errored) == (3, 0)


def test_a_failure_that_was_written_late_is_counted_with_the_next_hour() -> None:
    order = failing_order()
    run_to_end(order.start())
    hour = database_time().replace(minute=0, second=0, microsecond=0)
    failure_counts.count(now=hour + timedelta(hours=1, minutes=3))
    run_to_end(order.start())
    assert [one.attempts for one in FailureCount.objects.all()] == [1]
    failure_counts.count(now=hour + timedelta(hours=2, minutes=3))
    assert [one.attempts for one in FailureCount.objects.all()] == [2]


def test_failures_of_a_handler_are_counted_by_its_instances() -> None:
    @workflow
    async def order(step: WorkflowStep) -> None:
        raise LookupError("none")

    for _ in range(2):
        run_to_end(order.start())
    assert failure_counts.count(now=later(hours=2)) == 1
    assert [one.attempts for one in FailureCount.objects.all()] == [2]
    assert only_group().attempts == 2


def test_a_group_of_which_nothing_is_left_goes_after_35_days() -> None:
    order = failing_order()
    run_to_end(order.start())
    failure_counts.count(now=later(hours=2))
    assert failure_counts.purge(now=later(days=34)) == 0
    assert FailureCount.objects.count() == 1
    assert failure_counts.purge(now=later(days=36)) == 0
    assert (Failure.objects.count(), FailureCount.objects.count()) == (1, 0)
    Instance.objects.get().delete(by="ana")
    assert failure_counts.purge(now=later(days=36)) == 1
    assert Failure.objects.count() == 0
    run_to_end(order.start())
    assert only_group().attempts == 1
