"""The rate of a counter that only grows, from readings in the past minutes."""

from __future__ import annotations

from engine.status.pace import Readings


def test_the_first_reading_is_no_rate() -> None:
    assert Readings().per_minute(100.0, 5_000) is None


def test_readings_close_together_are_no_rate_yet() -> None:
    readings = Readings()
    readings.per_minute(100.0, 0)
    assert readings.per_minute(103.0, 60) is None
    assert readings.per_minute(106.0, 60) == 600.0


def test_the_window_is_the_last_five_minutes() -> None:
    readings = Readings()
    for at, count in ((0.0, 0), (200.0, 1_000), (400.0, 1_000)):
        readings.per_minute(at, count)
    assert readings.per_minute(500.0, 1_500) == 100.0  # since 200


def test_statistics_that_were_reset_start_again() -> None:
    readings = Readings()
    readings.per_minute(0.0, 9_000)
    assert readings.per_minute(10.0, 10) is None
    assert readings.per_minute(20.0, 20) == 60.0
