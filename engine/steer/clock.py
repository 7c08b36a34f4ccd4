"""The database's clock, the only one that decides what is due."""

from datetime import datetime
from functools import cached_property

from django.db import connection
from django.db.models import DateTimeField, Func


class ClockTimestamp(Func):
    """The time at which the statement reaches the row.

    Not Django's `Now()`, which is constant during a statement: a statement that waited for a lock would write a time
    from before the change it waited for.
    """

    function = "clock_timestamp"
    arity = 0
    output_field = DateTimeField()


class ClockReading:
    """The database's time as it was when it was first asked for."""

    @cached_property
    def now(self) -> datetime:
        return database_time()


def database_time() -> datetime:
    """Return the database's current time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
    return now  # type: ignore[no-any-return]
