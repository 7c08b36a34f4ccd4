"""What started within the last hour, by spans of three minutes, from counts that workers keep."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from engine import WorkflowStep, workflow
from engine.models import WorkflowCountDelta
from engine.status.last_hour import SPANS, started
from engine.steer import workflow_counts

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")


def declare(*names: str) -> None:
    for name in names:

        @workflow(name)
        async def story(step: WorkflowStep) -> None: ...

        story.start_many([{}] * 3)


def at(minutes: int) -> datetime:
    """Return the end of the minute that is so many minutes after that of the newest start."""
    minute = WorkflowCountDelta.objects.latest("at").at.replace(second=0, microsecond=0)
    return minute + timedelta(minutes=minutes, seconds=59)


@pytest.mark.parametrize("folded", [True, False], ids=["added up", "not yet"])
@pytest.mark.parametrize(
    ("later", "span"), [(0, SPANS - 1), (2, SPANS - 1), (3, SPANS - 2), (59, 0), (60, None)]
)
def test_starts_are_in_the_span_of_their_minute(later: int, span: int | None, *, folded: bool) -> None:
    declare("orders")
    now = at(later)
    if folded:
        workflow_counts.fold()
    expected = [0] * SPANS
    if span is not None:
        expected[span] = 3
    assert started(["orders"], now=now) == {"orders": tuple(expected)}


def test_other_workflows_are_not_counted_and_one_query_tells_all() -> None:
    declare("orders", "billing", "secret")
    with CaptureQueriesContext(
        connection,
    ) as queries:
        found = started(["orders", "billing", "idle"])
    assert {name: sum(counts) for name, counts in found.items()} == {"orders": 3, "billing": 3, "idle": 0}
    assert len(queries) == 1
    assert started([]) == {}
