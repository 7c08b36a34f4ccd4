"""Cron expressions: what is refused, and when they fire on days when the clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.values.cron import MAX_MISSED, Cron

BERLIN, SANTIAGO = "Europe/Berlin", "America/Santiago"


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}:00+00:00")


def fires(expression: str, zone: str, after: str, count: int) -> list[str]:
    """Return the next moments, in UTC, as texts."""
    return [f"{one:%Y-%m-%dT%H:%M}" for one in Cron.of(expression, zone).upcoming(at(after), count)]


@pytest.mark.parametrize(
    ("expression", "rule"),
    [
        ("* * * * * *", "five fields"),
        ("@reboot", "five fields"),
        ("@daily", "five fields"),
        ("", "five fields"),
        ("60 * * * *", "Bad minute"),
        ("*/0 * * * *", "Bad minute"),
        ("0 24 * * *", "Bad hour"),
        ("0 0 * * MON#6", "Bad day-of-week"),
        ("٣ * * * *", "five fields"),
        ("0 0 31 2 *", "never fires"),
        ("0 0 31 4,6,9,11 *", "never fires"),
        ("0 0 30 2 */2", "never fires"),
        ("0 " * 5_000, "10,000 characters; the limit is 100"),
        (None, "It must be a string"),
    ],
)
def test_an_expression_is_refused_with_its_value_and_the_rule(expression: object, rule: str) -> None:
    with pytest.raises(ValueError, match="is not a valid schedule") as refused:
        Cron.of(expression, "UTC")
    assert rule in str(refused.value)
    if isinstance(expression, str):
        assert expression[:100] in str(refused.value)


@pytest.mark.parametrize(
    "zone", ["Nowhere/Land", "Europe", "../etc/passwd", "/etc", "", "x" * 5_000, None, 5, "a\0"]
)
def test_an_unknown_zone_is_refused(zone: object) -> None:
    with pytest.raises(ValueError, match="There is no time zone") as refused:
        Cron.of("0 9 * * *", zone)
    assert repr(zone)[:40] in str(refused.value)
    assert len(str(refused.value)) < 200


@given(
    text=st.text("0123456789*/,-#L WMONSUNJAN@", max_size=30), rest=st.sampled_from(["", " * * * *", " * *"])
)
@settings(max_examples=300, deadline=None)
def test_whatever_is_written_is_read_or_refused(text: str, rest: str) -> None:
    try:
        cron = Cron.of(text + rest, BERLIN)
    except ValueError:
        return
    assert cron.after(at("2026-11-21T00:00")) is not None


def test_the_clock_on_the_wall_of_the_zone_counts() -> None:
    assert fires("0 9 * * *", BERLIN, "2026-03-28T00:00", 2) == ["2026-03-28T08:00", "2026-03-29T07:00"]
    assert fires("0 9 * * *", SANTIAGO, "2026-09-05T00:00", 2) == ["2026-09-05T13:00", "2026-09-06T12:00"]


def test_a_time_that_is_skipped_fires_at_the_next_that_exists() -> None:
    # In Berlin 03:00 follows 01:59; in Santiago 01:00 follows 23:59 of the day before.
    assert fires("30 2 * * *", BERLIN, "2026-03-28T02:00", 2) == ["2026-03-29T01:00", "2026-03-30T00:30"]
    assert fires("0 0 * * *", SANTIAGO, "2026-09-05T05:00", 2) == ["2026-09-06T04:00", "2026-09-07T03:00"]


def test_two_times_that_are_skipped_and_the_one_that_exists_fire_once() -> None:
    assert fires("0,30 2,3 * * *", BERLIN, "2026-03-28T12:00", 3) == [
        "2026-03-29T01:00",
        "2026-03-29T01:30",
        "2026-03-30T00:00",
    ]


def test_a_time_that_comes_twice_fires_once() -> None:
    assert fires("30 2 * * *", BERLIN, "2026-10-24T12:00", 2) == ["2026-10-25T00:30", "2026-10-26T01:30"]
    assert fires("30 23 * * *", SANTIAGO, "2026-04-04T12:00", 2) == ["2026-04-05T02:30", "2026-04-06T03:30"]


def test_whoever_asks_between_the_two_gets_no_time_that_has_passed() -> None:
    # 02:10 for the second time; 02:30 has fired for the first time.
    assert fires("30 2 * * *", BERLIN, "2026-10-25T01:10", 1) == ["2026-10-26T01:30"]


@pytest.mark.parametrize(
    ("zone", "change"),
    [
        (BERLIN, "2026-03-29T01:00"),
        (BERLIN, "2026-10-25T01:00"),
        (SANTIAGO, "2026-04-05T03:00"),
        (SANTIAGO, "2026-09-06T04:00"),
    ],
)
def test_every_quarter_of_an_hour_fires_through_a_change(zone: str, change: str) -> None:
    first = at(change) - timedelta(hours=3)
    expected = [first + timedelta(minutes=15 * n) for n in range(1, 25)]
    assert Cron.of("*/15 * * * *", zone).upcoming(first, 24) == expected


def test_a_change_of_half_an_hour_hides_nothing() -> None:
    # At two o'clock Lord Howe Island goes back to half past one; the library continues in whole hours from there.
    assert fires("5 */20 * * *", "Australia/Lord_Howe", "2026-04-04T14:00", 2) == [
        "2026-04-05T09:35",
        "2026-04-05T13:35",
    ]
    assert fires("*/20 */5 * * *", "Australia/Lord_Howe", "2026-04-04T14:00", 2) == [
        "2026-04-04T18:30",
        "2026-04-04T18:50",
    ]


CHANGES = st.sampled_from(
    [
        (BERLIN, "2026-03-29T01:00"),
        (BERLIN, "2026-10-25T01:00"),
        (SANTIAGO, "2026-04-05T03:00"),
        (SANTIAGO, "2026-09-06T04:00"),
        ("America/Havana", "2026-11-01T05:00"),
        ("Australia/Lord_Howe", "2026-04-04T15:00"),
        ("Australia/Lord_Howe", "2026-10-03T15:30"),
    ]
)
MINUTES = st.sampled_from(["*", "*/7", "*/20", "0", "5", "59", "22,33", "10-50/20"])
HOURS = st.sampled_from(["*", "*/2", "*/5", "*/20", "0", "1", "2", "3", "0-3", "23"])


@given(
    change=CHANGES, minute=MINUTES, hour=HOURS, start=st.integers(-1_000, 1_000), share=st.floats(0, 0.999)
)
@settings(max_examples=100, deadline=None)
def test_around_a_change_it_does_not_matter_from_when_one_looks(
    change: tuple[str, str], minute: str, hour: str, start: int, share: float
) -> None:
    zone, moment = change
    cron = Cron.of(f"{minute} {hour} * * *", zone)
    planned = cron.upcoming(at(moment) + timedelta(minutes=start), 10)
    assert planned == sorted(set(planned))
    for before, after in pairwise(planned):
        assert cron.after(before) == after
        assert cron.after(before + (after - before) * share) == after


def test_years_end_and_leap_days_come() -> None:
    assert fires("59 23 31 12 *", "UTC", "2026-12-31T23:58", 2) == ["2026-12-31T23:59", "2027-12-31T23:59"]
    assert fires("0 0 1 1 *", BERLIN, "2026-12-31T22:59", 1) == ["2026-12-31T23:00"]
    assert fires("0 12 29 2 *", "UTC", "2096-03-01T00:00", 2) == ["2104-02-29T12:00", "2108-02-29T12:00"]
    # The fifth Monday of a February is one of 28 years.
    assert fires("0 0 * 2 MON#5", "UTC", "2024-03-01T00:00", 1) == ["2044-02-29T00:00"]


def test_the_calendar_ends() -> None:
    assert fires("0 0 1 1 *", "UTC", "9999-06-01T00:00", 1) == []
    assert fires("0 0 29 2 *", BERLIN, "9997-01-01T00:00", 1) == []


def test_after_a_pause_only_the_latest_time_counts_and_the_others_are_missed() -> None:
    nightly = Cron.of("0 2 * * *", "UTC")
    first = at("2026-11-18T02:00")
    assert nightly.latest(first, first) == (first, 0)
    assert nightly.latest(first, at("2026-11-21T01:59")) == (at("2026-11-20T02:00"), 2)


@pytest.mark.parametrize(
    ("expression", "expected"), [("* * * * *", "2026-11-21T10:30"), ("0 * 1 * *", "2026-11-01T22:00")]
)
def test_years_of_missed_minutes_are_not_walked_over(expression: str, expected: str) -> None:
    cron = Cron.of(expression, BERLIN)
    first = cron.after(at("2015-01-01T00:00"))
    assert first is not None
    assert cron.latest(first, datetime(2026, 11, 21, 10, 30, 59, tzinfo=UTC)) == (at(expected), MAX_MISSED)
