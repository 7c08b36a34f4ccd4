"""If the database refuses a record and the error that follows from it, the instance is paused and says why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from engine import WorkflowStep, workflow
from engine.worker.database import sql
from tests.shifts import running_shift, wait_for, wait_until

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")


@contextmanager
def refusing_ends() -> Iterator[None]:
    """Let the database refuse every end of an instance."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TRIGGER no_end BEFORE UPDATE ON engine_instance FOR EACH ROW "
            "WHEN (NEW.status IN ('complete', 'errored')) EXECUTE FUNCTION engine_refuse('No end.')"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER no_end ON engine_instance")


def test_an_instance_whose_end_is_refused_is_paused_and_goes_on_once_the_cause_is_mended() -> None:
    ran: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.do("work", lambda: ran.append(1))
        return await step.do("more", str, "done")

    instance = story.start()
    with running_shift():
        with refusing_ends():
            wait_for(instance, "paused")
        assert "refused twice" in instance.pause_reason["message"]
        assert "No end." in instance.pause_reason["message"]
        assert instance.owner is None
        instance.resume()
        wait_for(instance)
    assert (instance.status, instance.output, ran) == ("complete", "done", [1])


def test_what_a_seat_holds_without_driving_it_is_given_back() -> None:
    """As after the loss of the answer to a claim."""

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.listen("go")
        return "done"

    instance, other = story.start(), story.start()
    with running_shift():
        wait_for(instance, "waiting")
        wait_for(other, "waiting")
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE engine_instance SET status = 'running', waiting_for = '', fence = fence + 1, "
                f"owner = ({sql.LIVE_WORKERS} LIMIT 1), wake_at = clock_timestamp() + interval '30 seconds' "
                "WHERE key = %s",
                [instance.key],
            )
        instance.send_event("go")
        wait_until(
            lambda: instance.refresh().status == "complete", what="the end of what was held for nothing"
        )
        assert (other.refresh().status, instance.quarantined) == ("waiting", False)
