"""The planned times of a week are those that the engine plans, however few it is asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import takewhile

import pytest

from engine.values.cron import Cron
from studio.schedules.coming import planned_in

EXPRESSIONS = (
    "*/20 * * * *",
    "0 9 * * 1-5",
    "30 2 * * *",
    "*/15 2 * * *",
    "5,50 0,8-10 * * 1",
    "59 23 L * *",
    "0 0 * * *",
    "7 1-3 * * *",
)
# With changes of an hour and of half an hour, at midnight and at night, and none.
ZONES = ("UTC", "Europe/Berlin", "America/Havana", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca")
MONDAYS = ("2026-03-02", "2026-03-23", "2026-03-30", "2026-10-19", "2026-10-26", "2026-11-23")


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_it_has_all_times_of_a_week_and_no_others(expression: str, zone: str) -> None:
    cron = Cron(expression, zone)
    for monday in MONDAYS:
        first = datetime.fromisoformat(monday).replace(tzinfo=UTC)
        end = first + timedelta(days=7)
        steps = _until(cron, first - timedelta(seconds=1), end)
        found = [at for hour in planned_in(cron, "Asia/Kolkata", first, end) for at in hour.times]
        assert found == steps, monday


def test_what_runs_every_minute_is_one_part_for_each_hour() -> None:
    first = datetime(2026, 11, 23, tzinfo=UTC)
    found = planned_in(Cron("* * * * *", "UTC"), "UTC", first, first + timedelta(days=7))
    assert [len(hour.minutes) for hour in found] == [60] * 168


def test_an_hour_that_clocks_repeat_is_there_twice() -> None:
    first = datetime(2026, 10, 24, 22, tzinfo=UTC)  # the Sunday on which clocks go back
    found = planned_in(
        Cron("*/30 * * * *", "Europe/Berlin"), "Europe/Berlin", first, first + timedelta(hours=25)
    )
    assert len(found) == 25
    assert {hour.minutes for hour in found} == {(0, 30)}


def _until(cron: Cron, moment: datetime, end: datetime) -> list[datetime]:
    found = list[datetime]()
    while not found or found[-1] < end:
        more = cron.upcoming(found[-1] if found else moment, 8)
        found += more
        if not more:
            break
    return list(takewhile(lambda at: at < end, found))
