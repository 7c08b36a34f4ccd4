"""The pause of a workflow: nothing of it is claimed, and nothing is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest
from django.utils import timezone

from engine import WorkflowStep, pauses, requests, workflow
from engine.models import Instance
from engine.models.connection import parameters
from engine.worker.database.limits import Limits
from engine.worker.database.reader import Claims, Reader
from tests.records import outcomes, statuses
from tests.shifts import running_shift, wait_for, wait_until, witness
from tests.travel import skip_wait


class Gate:
    """A sync body that says when it runs, and runs until it is released."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.let_out = threading.Event()

    def __call__(self) -> str:
        self.entered.set()
        assert self.let_out.wait(60)
        return "out"


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def look() -> Callable[[], None]:
    """Return what waits until the shift has looked at all that was due before."""
    return witness()


def is_held(instance: Instance) -> bool:
    """Return whether no worker has it, and the pause holds it."""
    row = instance.refresh()
    return row.status in ("queued", "waiting") and row.owner is None


def test_a_start_is_accepted_and_waits_for_the_resume(look: Callable[[], None]) -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.do("work", lambda: "done")

    with running_shift():
        pauses.pause("story")
        instance = story.start()
        look()
        assert (instance.refresh().status, instance.started_at) == ("queued", None)
        pauses.resume("story")
        assert wait_for(instance).output == "done"


def test_a_running_body_ends_and_is_recorded_and_nothing_more_starts(
    gate: Gate, look: Callable[[], None]
) -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        return [await step.do("first", gate), await step.do("second", lambda: "done")]

    with running_shift():
        instance = story.start()
        assert gate.entered.wait(60)
        pauses.pause("story")
        look()
        assert instance.refresh().status == "running"
        gate.let_out.set()
        wait_until(lambda: is_held(instance), what="the instance leaving its worker")
        assert (instance.status, statuses(instance)) == ("queued", {"first": "complete"})
        look()
        assert statuses(instance) == {"first": "complete"}
        pauses.resume("story")
        assert wait_for(instance).output == ["out", "done"]
    assert outcomes(instance, "first") == ["complete"]


def test_a_failed_body_is_not_retried_before_the_resume(look: Callable[[], None]) -> None:
    gate = Gate()
    tries = list[int]()

    @workflow
    async def story(step: WorkflowStep) -> None:
        def work() -> None:
            tries.append(1)
            if len(tries) == 1:
                gate()
                raise ValueError("again")

        await step.do("work", work, delay=0)

    with running_shift():
        instance = story.start()
        assert gate.entered.wait(60)
        pauses.pause("story")
        look()
        gate.let_out.set()
        wait_until(lambda: is_held(instance), what="the instance leaving its worker")
        look()
        assert (len(tries), outcomes(instance, "work")) == (1, ["errored"])
        pauses.resume("story")
        wait_for(instance)
    assert outcomes(instance, "work") == ["errored", "complete"]


def test_an_event_is_accepted_and_delivered_at_the_resume(look: Callable[[], None]) -> None:
    @workflow
    async def story(step: WorkflowStep) -> object:
        return (await step.wait_for_event("go")).payload

    with running_shift():
        instance = story.start()
        wait_for(instance, "waiting")
        pauses.pause("story")
        instance.send_event("go", 7)
        look()
        assert is_held(instance)
        pauses.resume("story")
        assert wait_for(instance).output == 7


def test_an_answer_is_accepted_and_delivered_at_the_resume(look: Callable[[], None]) -> None:
    @workflow
    async def story(step: WorkflowStep) -> bool:
        return (await step.request("ok", bool, message="Is it?")).value

    with running_shift():
        instance = story.start()
        wait_for(instance, "waiting")
        pauses.pause("story")
        requests.answer(instance, "ok", True, by="ada")
        look()
        assert is_held(instance)
        pauses.resume("story")
        assert wait_for(instance).output is True


def test_timers_are_not_shifted_and_what_expired_meanwhile_has_expired_at_the_resume(
    look: Callable[[], None],
) -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.sleep("nap", "1h")
        return "awake"

    @workflow(timeout="2h")
    async def late(step: WorkflowStep) -> None:
        await step.listen("never")

    with running_shift():
        asleep, waits = story.start(), late.start()
        wait_for(asleep, "waiting")
        wait_for(waits, "waiting")
        before = asleep.steps.get(name="nap").wake_at
        for name in ("story", "late"):
            pauses.pause(name)
        look()
        assert asleep.steps.get(name="nap").wake_at == before
        skip_wait(asleep)
        Instance.objects.filter(key=waits.key).update(
            deadline_at=timezone.now() - timedelta(seconds=1), wake_at=timezone.now() - timedelta(seconds=1)
        )
        look()
        assert is_held(asleep)
        assert is_held(waits)
        for name in ("story", "late"):
            pauses.resume(name)
        assert wait_for(asleep).output == "awake"
        assert wait_for(waits).error["type"] == "WorkflowTimeoutError"


def test_children_of_other_workflows_go_on_and_their_outcome_waits(look: Callable[[], None]) -> None:
    gate = Gate()

    @workflow
    async def child(step: WorkflowStep) -> str:
        await step.do("work", gate)
        return await step.do("more", lambda: "done")

    @workflow
    async def story(step: WorkflowStep) -> str:
        return str(await step.run_workflow("child", child))

    with running_shift():
        parent = story.start()
        assert gate.entered.wait(60)
        wait_for(parent, "waiting")
        pauses.pause("story")
        gate.let_out.set()
        wait_for(Instance.objects.get(workflow="child"), "complete")
        look()
        assert is_held(parent)
        pauses.resume("story")
        assert wait_for(parent).output == "done"


def test_with_a_count_the_oldest_are_released_and_run_to_their_end(look: Callable[[], None]) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.sleep("nap", "1h")
        await step.do("work", str)

    pauses.pause("story")
    first, second, third = (story.start() for _ in range(3))
    with running_shift():
        look()
        assert pauses.resume("story", count=2).released == 2
        for instance in (first, second):
            wait_for(instance, "waiting")
            skip_wait(instance)
            wait_for(instance, "complete")
        look()
        assert (third.refresh().status, third.started_at) == ("queued", None)
        first.restart()
        look()
        assert is_held(first)
        assert pauses.resume("story", count=1).released == 1
        wait_for(third, "waiting")
        assert is_held(first)
        pauses.resume("story")
        wait_for(first, "waiting")


def test_a_limit_holds_for_what_is_released_and_other_workflows_use_theirs(look: Callable[[], None]) -> None:
    gate = Gate()

    @workflow(max_running=1)
    async def story(step: WorkflowStep) -> None:
        await step.do("work", gate)

    @workflow(max_running=1)
    async def other(step: WorkflowStep) -> None:
        await step.do("work", str)

    pauses.pause("story")
    first, second = story.start(), story.start()
    with running_shift():
        wait_for(other.start())
        look()
        assert (first.refresh().status, second.refresh().status) == ("queued", "queued")
        assert pauses.resume("story", count=2).released == 2
        assert gate.entered.wait(60)
        look()
        assert (first.refresh().status, second.refresh().status) == ("running", "queued")
        gate.let_out.set()
        wait_for(first)
        wait_for(second)


def test_what_people_do_to_an_instance_works_while_its_workflow_is_paused(look: Callable[[], None]) -> None:
    undone = list[str]()

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("work", str, rollback=lambda ctx: undone.append(ctx.instance_id))
        await step.listen("never")

    with running_shift():
        instances = [story.start(id=f"i{number}") for number in range(3)]
        for instance in instances:
            wait_for(instance, "waiting")
        pauses.pause("story")
        ended, undoing, still = instances
        ended.terminate(by="ada")
        assert ended.status == "terminated"
        ended.restart()
        ended.terminate()
        ended.delete()
        still.pause()
        assert still.status == "paused"
        still.resume()
        still.add_note("Look at this.", by="ada")
        undoing.terminate(rollback=True)
        look()
        assert (undoing.refresh().status, undone) == ("queued", [])
        pauses.resume("story")
        assert wait_for(undoing).status == "terminated"
        assert undone == ["i1"]
        wait_for(still, "waiting")


def test_a_transaction_that_holds_the_pause_open_delays_no_other_workflow(look: Callable[[], None]) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("work", str)

    with running_shift(), psycopg.connect(**parameters("default")) as open_one:
        open_one.execute(
            "INSERT INTO engine_workflow_pause (workflow, paused_at) VALUES ('story', clock_timestamp())"
        )
        look()
        wait_for(story.start(), "complete")
        open_one.rollback()
        pauses.pause("story")
        open_one.execute("SELECT FROM engine_workflow_pause WHERE workflow = 'story' FOR UPDATE")
        look()
        held = story.start()
        look()
        assert is_held(held)
        open_one.rollback()


def test_a_worker_does_not_look_again_and_again_for_what_is_held(
    look: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("work", str)

    pauses.pause("story")
    for _ in range(3):
        story.start()
    asked, claim = list[int](), Reader.claim

    async def counted(self: Reader, limits: Limits, limit: int, *, quarantined: bool) -> Claims:
        asked.append(limit)
        return await claim(self, limits, limit, quarantined=quarantined)

    with running_shift():
        look()
        monkeypatch.setattr(Reader, "claim", counted)
        time.sleep(0.5)
    assert len(asked) < 10  # it would be a hundred
