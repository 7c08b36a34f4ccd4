"""The argument `at` of a start: what it takes, and what is refused with the value and the rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from engine import InvalidValueError
from engine.models import Instance
from engine.steer.clock import database_time
from engine.testing import workflow_test
from tests.sample.workflows import process_order, tick

ORDER = {"customer": "Ada", "items": [{"sku": "A-1", "quantity": 2}]}
HOUR = timedelta(hours=1)
NAIVE = datetime(2026, 12, 1, 9, tzinfo=UTC).replace(tzinfo=None)


def soon() -> datetime:
    return database_time() + HOUR


@pytest.mark.django_db
def test_what_a_later_start_returns_is_what_is_stored() -> None:
    at = soon()
    instance = process_order.start(ORDER, at=at, by="li")
    stored = Instance.objects.get(key=instance.key)
    names = [field.attname for field in Instance._meta.concrete_fields]
    assert {name: getattr(instance, name) for name in names} == {
        name: getattr(stored, name) for name in names
    }
    assert (stored.starts_at, stored.wake_at, stored.status) == (at, at, "queued")
    assert stored.deadline_at == at + timedelta(days=1)
    assert stored.created_at < at


@pytest.mark.django_db
@pytest.mark.parametrize("shape", ["text", "zulu", "zone"])
def test_a_text_and_any_zone_name_the_same_moment(shape: str) -> None:
    at = soon().replace(microsecond=0)
    there = at.astimezone(timezone(timedelta(hours=14)))
    given: Any = {"text": f" {there.isoformat()} ", "zulu": f"{at:%Y-%m-%dT%H:%M:%S}Z", "zone": there}[shape]
    assert tick.start(at=given).starts_at == at


@pytest.mark.django_db
@pytest.mark.parametrize(
    "past",
    [datetime(2020, 1, 1, tzinfo=UTC), datetime.min.replace(tzinfo=UTC), "0001-01-01T00:00+14:00", None],
)
def test_a_moment_in_the_past_is_now(past: Any) -> None:
    instance = tick.start(at=past)
    assert (instance.starts_at, instance.wake_at) == (None, instance.created_at)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (NAIVE, '"2026-12-01T09:00:00" has no time zone.'),
        ("2026-12-01T09:00", '"2026-12-01T09:00:00" has no time zone.'),
        ("2026-12-01", '"2026-12-01T00:00:00" has no time zone.'),
        ("tomorrow", '"tomorrow" is not a date and time. Write it like 2026-12-01T09:00+01:00.'),
        ("", '"" is not a date and time.'),
        ("9" * 300, f'"{"9" * 100}" is not a date and time.'),
        ("2026-12-01T09:00\0Z", "is not a date and time."),
        (
            1_764_000_000,
            "It must be a datetime or its text, such as 2026-12-01T09:00+01:00. It is 1764000000.",
        ),
        (timedelta(hours=1), "It must be a datetime or its text"),
        (datetime.max.replace(tzinfo=UTC), "is more than 365 days away."),
        ("9999-12-31T23:59-14:00", "is more than 365 days away."),
    ],
)
def test_other_values_are_named_with_the_rule_and_start_nothing(given: Any, rule: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        tick.start(at=given)
    assert rule in str(refused.value)
    assert (refused.value.field, refused.value.code) == ("at", "invalid_at")
    assert not Instance.objects.exists()


@pytest.mark.django_db
def test_a_year_is_the_most() -> None:
    tick.start(at=database_time() + timedelta(days=364))
    with pytest.raises(InvalidValueError, match="is more than 365 days away"):
        tick.start(at=database_time() + timedelta(days=365, minutes=1))


@pytest.mark.django_db
def test_each_item_of_a_batch_has_its_own_time() -> None:
    at = soon()
    done = tick.start_many([{"id": "a", "at": at}, {"id": "b"}, {"id": "c", "at": "soon"}])
    assert [(one.id, one.starts_at) for one in done.created] == [("a", at), ("b", None)]
    [error] = done.errors
    assert (error["index"], error["code"]) == (2, "invalid_value")
    assert '"soon" is not a date and time' in error["message"]


@pytest.mark.django_db
def test_an_instance_that_exists_keeps_its_time() -> None:
    first = soon()
    tick.get_or_start("once", at=first)
    again, is_new = tick.get_or_start("once", at=first + HOUR)
    assert (again.starts_at, is_new) == (first, False)


@pytest.mark.django_db(transaction=True)
def test_the_async_twins_take_a_time() -> None:
    at = soon()

    async def story() -> list[datetime | None]:
        started = await tick.astart(at=at)
        found, _ = await tick.aget_or_start("other", at=at)
        return [started.starts_at, found.starts_at]

    assert async_to_sync(story)() == [at, at]


@pytest.mark.usefixtures("engine_db")
def test_a_test_of_a_workflow_jumps_to_the_start() -> None:
    with workflow_test(tick) as test:
        at = test.time.now() + HOUR
        instance = test.start(at=at)
        assert instance.starts_at == at
        assert test.run_to_complete().started_at == at
        test.start(at=at + HOUR)
        test.time.travel("30m")
        assert test.instance.refresh().started_at is None
        test.time.travel("31m")
        assert test.instance.refresh().started_at == at + HOUR
