"""The grammar of durations, and how they are shown."""

import math
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.values.durations import MAX_DURATION, format_duration, parse_duration

MS = timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (timedelta(minutes=3), timedelta(minutes=3)),
        (30, timedelta(seconds=30)),
        (0, timedelta(0)),
        (-0.0, timedelta(0)),
        (0.1, 100 * MS),
        (1.5, 1500 * MS),
        ("10m", timedelta(minutes=10)),
        ("1 minute", timedelta(minutes=1)),
        ("26 hours", timedelta(hours=26)),
        ("1h 30m", timedelta(minutes=90)),
        ("1h30m", timedelta(minutes=90)),
        ("30m 1h", timedelta(minutes=90)),
        ("1.5 h", timedelta(minutes=90)),
        ("2 days", timedelta(days=2)),
        ("2 DAYS 4 Hrs", timedelta(days=2, hours=4)),
        ("250ms", 250 * MS),
        ("0s", timedelta(0)),
        ("1s", timedelta(seconds=1)),
        ("1 sec", timedelta(seconds=1)),
        ("5 secs", timedelta(seconds=5)),
        ("5 seconds", timedelta(seconds=5)),
        ("5 mins", timedelta(minutes=5)),
        ("1 hr", timedelta(hours=1)),
        ("3w", timedelta(weeks=3)),
        ("1 week", timedelta(weeks=1)),
        ("  10m\n", timedelta(minutes=10)),
        ("365 days", MAX_DURATION),
        (365 * 86_400, MAX_DURATION),
    ],
)
def test_a_duration_means(value, expected):
    """CF-37: "1 minute" and "26 hours"; a number counts seconds, not milliseconds."""
    assert parse_duration(value) == expected


@pytest.mark.parametrize(
    ("value", "quoted", "reason"),
    [
        ("soon", '"soon"', "is not a duration"),
        ("", '""', "is empty"),
        ("  ", '"  "', "is empty"),
        ("10", '"10"', "has no unit"),
        ("1.5", '"1.5"', "has no unit"),
        ("1_000", '"1_000"', "is not a duration"),
        ("1_000s", '"1_000s"', "is not a duration"),
        ("１ hour", '"１ hour"', "is not a duration"),
        ("1 fortnight", '"1 fortnight"', 'has an unknown unit "fortnight"'),
        ("1 month", '"1 month"', 'has an unknown unit "month"'),
        ("1h-5m", '"1h-5m"', "is not a duration"),
        ("-1s", '"-1s"', "is not a duration"),
        ("1e3s", '"1e3s"', 'has an unknown unit "e"'),
        ("1m 30m", '"1m 30m"', 'has the unit "m" twice'),
        ("h", '"h"', "is not a duration"),
        ("1h 5", '"1h 5"', "is not a duration"),
        ("nan", '"nan"', "is not a duration"),
        ("999999999 days", '"999999999 days"', "is longer than 365 days"),
        pytest.param("9" * 5000 + "s", f'"{"9" * 80}…"', "is not a duration", id="5,000 digits"),
        (366 * 86_400, '"31622400"', "is longer than 365 days"),
        (1e12, '"1000000000000.0"', "is longer than 365 days"),
        (1e308, '"1e+308"', "is longer than 365 days"),
        pytest.param(
            10**5000, "(an integer of more than 80 digits)", "is longer than 365 days", id="10**5000"
        ),
        pytest.param(-(10**5000), "(an integer of more than 80 digits)", "is negative", id="-10**5000"),
        (-1, '"-1"', "is negative"),
        (timedelta(microseconds=-1), '"-1 day, 23:59:59.999999"', "is negative"),
        (MAX_DURATION + timedelta(microseconds=1), '"365 days, 0:00:00.000001"', "is longer than 365 days"),
        (math.nan, '"nan"', "is not a finite number"),
        (math.inf, '"inf"', "is not a finite number"),
        (True, '"True"', "is not a timedelta, a number of seconds or a string"),
        (None, "(NoneType)", "is not a timedelta, a number of seconds or a string"),
        (Decimal(1), "(Decimal)", "is not a timedelta, a number of seconds or a string"),
    ],
)
def test_anything_else_is_refused_with_its_text(value, quoted, reason):
    """CF-38: "soon" is a clear error, neither NaN nor a millisecond."""
    with pytest.raises(ValueError, match=r"^The timeout ") as refused:
        parse_duration(value, what="timeout")
    assert str(refused.value).startswith(f"The timeout {quoted} {reason}. ")


@given(st.text() | st.integers() | st.floats() | st.booleans() | st.none())
def test_whatever_comes_the_answer_is_a_duration_or_a_value_error(value):
    try:
        duration = parse_duration(value)
    except ValueError:
        return
    assert timedelta(0) <= duration <= MAX_DURATION


@given(st.integers(0, 364), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_a_text_is_the_sum_of_its_parts(days, hours, minutes, seconds, millis):
    text = f"{days}d {hours}h {minutes}m {seconds}s {millis}ms"
    expected = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=millis)
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    ("duration", "shown"),
    [
        (timedelta(0), "0 s"),
        (timedelta(seconds=-5), "0 s"),
        (timedelta(microseconds=1), "<1 ms"),
        (850 * MS, "850 ms"),
        (timedelta(microseconds=999_999), "999 ms"),
        (timedelta(seconds=1), "1 s"),
        (4250 * MS, "4.2 s"),
        (timedelta(seconds=59.9), "59 s"),
        (timedelta(seconds=124), "2 m 04 s"),
        (timedelta(minutes=10), "10 m 00 s"),
        (timedelta(hours=3, minutes=5), "3 h 05 m"),
        (timedelta(hours=27, minutes=59), "1 d 3 h"),
        (timedelta(days=365), "365 d"),
    ],
)
def test_a_duration_is_shown_in_two_units_at_most(duration, shown):
    assert format_duration(duration) == shown
