"""A client whose instances are kept no moment: it starts some, a schedule does, and it deletes them all the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count

from django.db import Error, connection

from engine.models import Instance, ScheduleRow
from engine.steer import retention, schedules
from tests.chaos.doors import BY
from tests.chaos.workflows import passing
from tests.process import ledger

START_EVERY = 1.0
SWEEP_EVERY = 0.2
TRY_AGAIN = 0.1


def start_and_sweep(ends_at: float) -> None:
    """Go on until then, and after it until all are gone.

    A start of which nobody knows is not repeated under its id: the first may be over, and gone.
    """
    names = (f"p{number}" for number in count())
    start_at = time.monotonic()
    while time.monotonic() < ends_at:
        if time.monotonic() >= start_at:
            name = next(names)
            if _do(lambda name=name: passing.start(1, id=name)) is not None:  # type: ignore[misc]
                ledger.write("passing", instance=name)
            start_at = time.monotonic() + START_EVERY
        _do(lambda: retention.sweep(seconds=1.0))
        time.sleep(SWEEP_EVERY)
    while _do(_pause) is None:
        time.sleep(TRY_AGAIN)
    while _do(Instance.objects.filter(workflow=passing.name).exists) is not False:
        _do(lambda: retention.sweep(seconds=1.0))
        time.sleep(TRY_AGAIN)


def _pause() -> bool:
    """Let the schedule start nothing while the end is looked at."""
    for row in ScheduleRow.objects.filter(workflow=passing.name):
        schedules.pause(row, by=BY)
    return True


def _do(act: Callable[[], object]) -> object:
    """Return the answer; None where the database is away."""
    try:
        return act()
    except Error:
        connection.close()
        time.sleep(TRY_AGAIN)
        return None
