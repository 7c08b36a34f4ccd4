"""A pause that comes before its worker knows of it: what has reached the handler by then is recorded.

What is complete at once (a milestone, a spawned child, an event that was there) reaches the handler before the flush
with its start. A pause must not leave that start out: later outcomes, cancelled steps and the end of the handler may
rest on it.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from engine import WorkflowStep, workflow
from engine.models import Instance
from tests.integration.sessions import in_background
from tests.records import statuses
from tests.shifts import running_shift, until, wait_for, wait_until

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")


async def pause_unnoticed(instance: Instance) -> None:
    """Pause while the worker's loop stands still: it hears of the pause after the end of this body."""
    in_background(instance.pause)()


async def at_once(step: WorkflowStep, kind: str) -> Any:
    if kind == "milestone":
        return await step.progress("at once")
    if kind == "event":
        return (await step.wait_for_event("at once", "there", timeout=None)).payload
    if kind == "map":
        return await step.map("at once", [], lambda item, index: item)
    return await step.spawn("at once", "child")


KINDS = ["milestone", "event", "map", "child"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_race_that_was_decided_before_a_pause_is_decided_in_the_same_way_after_it(kind: str) -> None:
    let_out = threading.Event()

    @workflow("child")
    async def child(step: WorkflowStep) -> None:
        """Do nothing."""

    @workflow
    async def story(step: WorkflowStep) -> str:
        async def first() -> None:
            await step.do("pause", pause_unnoticed, instance)
            await at_once(step, kind)

        loser = asyncio.ensure_future(step.do("loser", until, threading.Event()))
        racers = [asyncio.ensure_future(first()), asyncio.ensure_future(step.do("second", until, let_out))]
        done, _ = await asyncio.wait(racers, return_when=asyncio.FIRST_COMPLETED)
        if racers[1] in done:
            return await loser or "second"
        loser.cancel()
        return await step.do("after", lambda: "first")

    instance = story.start()
    instance.send_event("there")
    with running_shift():
        wait_until(lambda: statuses(instance).get("loser") == "cancelled", what="the end of the race")
        let_out.set()
        wait_for(instance, "paused")
        assert "after" not in statuses(instance)
        instance.resume()
        wait_for(instance)
    assert (instance.output, instance.error) == ("first", None)
    deliveries = list(
        instance.steps.exclude(delivery=None).order_by("delivery").values_list("name", "delivery")
    )
    assert deliveries == [("pause", 1), ("at once", 2), ("second", 3), ("after", 4)]


def test_a_child_is_started_whose_handle_is_returned_as_a_pause_comes() -> None:
    """The open step delays the end, so that the spawn is recorded before it."""

    @workflow("child")
    async def child(step: WorkflowStep) -> None:
        """Do nothing."""

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.do("pause", pause_unnoticed, instance)
        open_step = asyncio.ensure_future(step.do("open", str))
        handle = await step.spawn("spawn", child)
        assert not open_step.done()
        return handle.id

    instance = story.start()
    with running_shift():
        wait_for(instance)
        wait_for(Instance.objects.get(workflow="child", id=instance.output))
    assert statuses(instance) == {"pause": "complete", "open": "cancelled", "spawn": "complete"}
