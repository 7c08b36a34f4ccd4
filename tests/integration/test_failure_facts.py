"""What is told about groups of failures: how often, what they have in common, whether they went away."""

from __future__ import annotations

from datetime import UTC, timedelta
from itertools import pairwise
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from engine import StepContext, WorkflowStep, failures, workflow
from engine.models import FailureCount
from engine.status.failures.trend import Unit
from engine.status.gathering import database_now
from tests.stories import run_to_end

pytestmark = [pytest.mark.usefixtures("engine_db", "own_registry")]

BARS: dict[Unit, int] = {"day": 14, "hour": 24, "minutes": 20}
WIDTHS: dict[Unit, timedelta] = {
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minutes": timedelta(minutes=3),
}


class Cart(BaseModel):
    region: str
    lines: int = 1
    note: str = ""
    card: SecretStr = SecretStr("4711")
    address: dict[str, Any] = {}


def declare() -> Any:
    """Declare a workflow that fails in one region."""

    @workflow("orders")
    async def orders(step: WorkflowStep, cart: Cart) -> str:
        def charge(ctx: StepContext) -> str:
            if cart.region == "eu":
                raise ConnectionError("the bank does not answer")
            return "charged"

        return await step.do("charge", charge, max_attempts=1)

    return orders


def run(orders: Any, region: str, **values: Any) -> None:
    tags = values.pop("tags", ())
    run_to_end(orders.start(Cart(region=region, **values), tags=tags))


def only() -> list[str]:
    (found,) = failures.groups(state="").groups
    return [found.fingerprint]


def test_a_value_that_most_failing_instances_have_is_told_with_the_usual_share() -> None:
    orders = declare()
    for number in range(3):
        run(orders, "us", note=f"n{number}", address={"city": {"zip": number}})
    for number in range(2):
        run(orders, "eu", lines=number, tags=["vip"], address={"city": {"zip": 7, "deep": {"er": 1}}})
    found = failures.shares(only())
    told = {(one.what, one.value): (one.count, one.of, one.usual_count, one.usual_of) for one in found}
    assert told == {
        ("params.region", "eu"): (2, 2, 0, 3),
        ("params.address.city.zip", "7"): (2, 2, 0, 3),
        ("params.note", ""): (2, 2, 0, 3),
        ("tag", "vip"): (2, 2, 0, 3),
    }


def test_what_all_instances_have_is_not_told_and_neither_is_a_single_one() -> None:
    orders = declare()
    run(orders, "eu")
    assert failures.shares(only()) == []
    run(orders, "eu")
    run(orders, "us")
    assert [(one.what, one.value, one.usual_count, one.usual_of) for one in failures.shares(only())] == [
        ("params.region", "eu", 0, 1)
    ]


def test_without_complete_ones_all_others_are_the_usual_ones() -> None:
    orders = declare()
    run(orders, "eu")
    run(orders, "eu")
    orders.start(Cart(region="us"))
    assert [(one.what, one.value, one.usual_count, one.usual_of) for one in failures.shares(only())] == [
        ("params.region", "eu", 0, 1)
    ]


def test_without_any_others_what_differs_among_the_failing_ones_is_first_and_the_code_last() -> None:
    orders = declare()
    for lines in (1, 2, 2):
        run(orders, "eu", lines=lines)
    found = failures.shares(only())
    assert [(one.what, one.count, one.usual_of) for one in found] == [
        ("params.lines", 2, 0),
        ("params.note", 3, 0),
        ("params.region", 3, 0),
        ("code", 3, 0),
    ]


def test_a_trend_has_all_bars_and_the_failures_of_this_hour() -> None:
    orders = declare()
    for _ in range(3):
        run(orders, "eu")
    fingerprints = only()
    for unit, bars in BARS.items():
        found = failures.trend(fingerprints, unit=unit)
        assert len(found) == bars
        assert sum(number for _, number in found) == 3
        widths = {later - earlier for (earlier, _), (later, _) in pairwise(found)}
        assert widths == {WIDTHS[unit]}
    days = failures.trend(fingerprints)
    assert all((at.hour, at.minute, at.tzinfo) == (0, 0, UTC) for at, _ in days)


def test_a_trend_reads_the_counts_of_earlier_hours() -> None:
    run(declare(), "eu")
    fingerprints = only()
    hour = database_now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    for ago, number in ((timedelta(0), 5), (timedelta(days=3), 7), (timedelta(days=40), 9)):
        FailureCount.objects.create(fingerprint=fingerprints[0], hour=hour - ago, attempts=number)
    assert [number for _, number in failures.trend(fingerprints, unit="hour")][-3] == 5
    assert sum(number for _, number in failures.trend(fingerprints)) == 1 + 5 + 7
    assert sum(number for _, number in failures.trend(fingerprints, unit="minutes")) == 1


def test_a_step_that_succeeds_again_has_recovered() -> None:
    orders = declare()
    run(orders, "us")
    run(orders, "eu")
    fingerprints = only()
    assert failures.recovered(fingerprints) is None
    run(orders, "us")
    run(orders, "us")
    found = failures.recovered(fingerprints)
    assert found is not None
    assert (found.count, found.since) == (2, failures.group(fingerprints[0]).last_seen)
    run(orders, "eu")
    assert failures.recovered(fingerprints) is None


def test_a_handler_that_completes_again_has_recovered() -> None:
    @workflow("orders")
    async def orders(step: WorkflowStep, number: int) -> None:
        if number == 1:
            raise KeyError("no")

    run_to_end(orders.start(1))
    fingerprints = only()
    assert failures.recovered(fingerprints) is None
    run_to_end(orders.start(2))
    found = failures.recovered(fingerprints)
    assert found is not None
    assert found.count == 1


def test_nothing_is_told_about_what_does_not_exist() -> None:
    unknown = ["0123456789abcdef"]
    assert failures.shares(unknown) == []
    assert failures.recovered(unknown) is None
    assert failures.trend([]) == [(at, 0) for at, _ in failures.trend(unknown)]
