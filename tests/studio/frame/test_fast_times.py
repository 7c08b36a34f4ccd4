"""Times from the database are what Django reads, only sooner."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from django.db import DataError, connection

from studio.frame.fast_times import TIMES, _read_fast

pytestmark = pytest.mark.django_db


def loader() -> Any:
    return connection.connection.adapters.get_loader(TIMES, psycopg.pq.Format.TEXT)


def read(sql: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {sql}")
        return cursor.fetchone()[0]


@pytest.mark.parametrize("text", ["12:13:14", "12:13:14.5", "12:13:14.000001", "00:00:00", "23:59:59.99999"])
def test_a_time_is_read_to_the_microsecond_and_in_utc(text: str) -> None:
    found = read(f"'2026-02-28 {text}+00'::timestamptz")
    assert found == datetime.fromisoformat(f"2026-02-28T{text}+00:00")
    assert found.tzinfo is UTC
    assert loader().is_fast


def test_arrays_and_missing_times_are_read_alike() -> None:
    assert read("ARRAY[NULL, '2026-02-28 12:00+00'::timestamptz]") == [
        None,
        datetime(2026, 2, 28, 12, tzinfo=UTC),
    ]
    assert read("NULL::timestamptz") is None


@pytest.mark.parametrize("text", ["infinity", "-infinity", "0044-03-15 00:00+00 BC", "10000-01-01 00:00+00"])
def test_what_python_has_no_time_for_is_refused_as_before(text: str) -> None:
    with pytest.raises(DataError, match=r"timestamp too|can't parse"):
        read(f"'{text}'::timestamptz")


@pytest.mark.parametrize("zone", ["Europe/London", "Asia/Kolkata", "America/St_Johns"])
@pytest.mark.parametrize("text", ["2026-07-01 12:30:00+00", "2026-12-01 12:30:00+00", "1847-01-01 00:00+00"])
def test_in_another_zone_django_reads_it(zone: str, text: str) -> None:
    fast, before = loader(), loader().__mro__[2]
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('TimeZone', %s, true)", [zone])
        cursor.execute("SELECT %s::timestamptz::text", [text])
        sent = cursor.fetchone()[0].encode()
    made = [one(TIMES, connection.connection).load(sent) for one in (fast, before)]
    assert made[0] == made[1]


def test_a_connection_that_a_pool_gives_again_is_as_it_was() -> None:
    read("1")
    before = loader()
    _read_fast(connection)
    assert loader() is before
