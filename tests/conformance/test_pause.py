"""Pause and resume."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest

from engine import NonRetryableError, StepError, WorkflowStep, workflow
from engine.models import Audit, Instance
from tests import shifts
from tests.records import outcomes, statuses, step
from tests.shifts import witness
from tests.stories import running_shift, wait_for
from tests.travel import skip_wait


class Gate:
    """A sync body that says when it runs, and runs until it is released."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.let_out = threading.Event()
        self.runs = 0

    def __call__(self) -> str:
        self.runs += 1
        self.entered.set()
        assert self.let_out.wait(60)
        return "out"


@pytest.fixture
def gate() -> Gate:
    return Gate()


def test_a_pause_lets_the_running_body_finish_and_starts_nothing_more(gate: Gate) -> None:
    """CF-59, LC-41"""

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        return [await step.do("first", gate), await step.do("second", lambda: "done")]

    instance = story.start()
    with shifts.running_shift():
        assert gate.entered.wait(60)
        instance.pause(by="ada", reason="look first")
        assert instance.status == "waiting_for_pause"
        gate.let_out.set()
        shifts.wait_for(instance, "paused")
        assert statuses(instance) == {"first": "complete"}
        assert (instance.owner, instance.wake_at, instance.paused_at is None) == (None, None, False)
        instance.resume(by="ada")
        shifts.wait_for(instance)
    assert (instance.output, gate.runs) == (["out", "done"], 1)
    assert list(Audit.objects.order_by("key").values_list("verb", "actor", "before", "after")) == [
        ("pause", "ada", "running", "waiting_for_pause"),
        ("resume", "ada", "paused", "queued"),
    ]


def test_other_branches_go_on_at_once_when_a_pause_is_withdrawn_while_a_body_runs(gate: Gate) -> None:
    """Guarantee 12: resuming in waiting_for_pause withdraws the pause"""

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        async def branch() -> str:
            await step.listen("go")
            await step.sleep("nap", "10ms")
            return await step.do("after", lambda: "after")

        return list(await asyncio.gather(step.do("long", gate), branch()))

    @workflow
    async def other(step: WorkflowStep) -> None:
        await step.listen("go")

    instance, witness = story.start(), other.start()
    with shifts.running_shift():
        assert gate.entered.wait(60)
        shifts.wait_for(witness, "waiting")
        instance.pause()
        instance.send_event("go")
        witness.send_event("go")
        shifts.wait_for(witness)  # so the shift has seen the pause
        assert instance.refresh().status == "waiting_for_pause"
        assert statuses(instance) == {"long": "running", "go": "waiting"}
        instance.resume()
        shifts.wait_until(
            lambda: statuses(instance).get("after") == "complete", what="the end of the other branch"
        )
        assert statuses(instance)["long"] == "running"
        gate.let_out.set()
        shifts.wait_for(instance)
    assert (instance.output, gate.runs) == (["out", "after"], 1)


def test_pauses_that_come_and_go_while_a_body_runs_neither_hold_up_nor_repeat_a_step(gate: Gate) -> None:
    ran: list[int] = []
    count = 40

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        async def branch() -> str:
            for number in range(count):
                await step.do(f"step {number}", ran.append, number)
                await step.progress(f"done {number}")
            return "branch"

        return list(await asyncio.gather(step.do("long", gate), branch()))

    instance = story.start()
    with shifts.running_shift():
        assert gate.entered.wait(60)
        for number in range(1, count, 4):
            shifts.wait_until(lambda number=number: len(ran) >= number)
            instance.pause()
            assert instance.status == "waiting_for_pause"
            instance.resume()
        shifts.wait_until(lambda: len(ran) == count, what="the end of the other branch")
        assert statuses(instance)["long"] == "running"
        gate.let_out.set()
        shifts.wait_for(instance)
    assert (instance.output, gate.runs, ran) == (["out", "branch"], 1, list(range(count)))


@pytest.mark.parametrize("kind", ["sleep", "event", "retry", "queued"])
def test_what_waits_is_paused_at_once(kind: str) -> None:
    """CF-61"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        if kind == "sleep":
            await step.sleep("wait", "1h")
        elif kind == "event":
            await step.wait_for_event("wait", timeout="1h")
        else:
            await step.do("wait", lambda: 1 / 0, delay="1h", max_attempts=2)

    instance = story.start()
    if kind != "queued":
        with running_shift():
            wait_for(instance, "waiting")
        assert instance.waiting_for == kind
    assert instance.pause().status == "paused"
    run_beside()
    assert instance.refresh().status == "paused"


def run_beside() -> None:
    """Let a shift run something else, so that it could have taken the paused one."""

    @workflow
    async def beside(step: WorkflowStep) -> None:
        await step.do("work", str)

    with shifts.running_shift(name="beside"):
        shifts.wait_for(beside.start())


def test_a_resume_shifts_sleeps_backoffs_and_timeouts_by_the_time_paused() -> None:
    """LC-41, guarantee 12; a sleep still ends at its time"""
    moment = datetime.now(UTC) + timedelta(hours=2)

    @workflow
    async def story(step: WorkflowStep) -> None:
        await asyncio.gather(
            step.sleep("sleep", "1h"),
            step.wait_for_event("event", timeout="1h"),
            step.do("retry", lambda: 1 / 0, delay="1h"),
            step.sleep_until("moment", moment),
        )

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        before = wake_ups(instance)
        instance.pause()
        Instance.objects.update(paused_at=instance.paused_at - timedelta(minutes=30))
        instance.resume()
        wait_for(instance, "waiting")
    shifts = {name: at - before[name] for name, at in wake_ups(instance).items()}
    assert shifts.pop("moment") == timedelta(0)
    for shift in shifts.values():
        assert timedelta(minutes=30) <= shift < timedelta(minutes=31)
    assert instance.wake_at == min(wake_ups(instance).values())


def wake_ups(instance: Instance) -> dict[str, datetime]:
    return {name: step(instance, name).wake_at for name in ("sleep", "event", "retry", "moment")}


def test_a_pause_that_is_not_reached_yet_is_withdrawn_by_a_resume(gate: Gate) -> None:
    """CF-62: running again, and nothing is executed again"""
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.do("before", lambda: ran.append("before"))
        await step.do("gate", gate)
        return await step.do("after", lambda: "after")

    instance = story.start()
    with shifts.running_shift():
        assert gate.entered.wait(60)
        assert instance.pause().status == "waiting_for_pause"
        assert instance.resume().status == "running"
        gate.let_out.set()
        shifts.wait_for(instance)
    assert (instance.output, ran, gate.runs) == ("after", ["before"], 1)


@pytest.mark.parametrize("kind", ["sleep", "event"])
def test_a_bare_except_does_not_catch_the_pause(kind: str) -> None:
    """CF-64: parking raises nothing, and no step starts while it is paused"""
    caught: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            if kind == "sleep":
                await step.sleep("wait", "1h")
            else:
                await step.wait_for_event("wait")
        except Exception as error:  # noqa: BLE001 - what the case is about
            caught.append(repr(error))
        await step.do("after", str)
        return "done"

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.pause()
        instance.send_event("wait")
        run_beside()
        assert statuses(instance) == {"wait": "waiting"}
        instance.resume()
        if kind == "sleep":
            wait_for(instance, "waiting")
            skip_wait(instance)
        wait_for(instance)
    assert (instance.output, caught) == ("done", [])


def test_a_pause_after_a_caught_error_is_reached(gate: Gate) -> None:
    """CF-65"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        def declined() -> None:
            raise NonRetryableError("declined")

        try:
            await step.do("charge", declined)
        except StepError:
            await step.do("gate", gate)
        await step.do("after", str)

    instance, look = story.start(), witness()
    with shifts.running_shift():
        assert gate.entered.wait(60)
        instance.pause()
        look()
        gate.let_out.set()
        shifts.wait_for(instance, "paused")
    assert statuses(instance) == {"charge": "errored", "gate": "complete"}


def test_a_failure_during_the_pause_backs_off_after_it(gate: Gate) -> None:
    """CF-59 for a body that fails: recorded, and the retry waits for the resume"""

    @workflow
    async def story(step: WorkflowStep) -> str:
        def flaky() -> str:
            if gate.runs == 0:
                gate()
                raise ValueError("no")
            return "second"

        return await step.do("flaky", flaky, delay=0)

    instance, look = story.start(), witness()
    with shifts.running_shift():
        assert gate.entered.wait(60)
        instance.pause()
        look()
        gate.let_out.set()
        shifts.wait_for(instance, "paused")
        assert outcomes(instance, "flaky") == ["errored"]
        instance.resume()
        shifts.wait_for(instance)
    assert (instance.output, outcomes(instance, "flaky")) == ("second", ["errored", "complete"])


def test_pause_and_resume_do_nothing_where_there_is_nothing_to_do() -> None:
    """CF-67"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("work", str)

    done = shifts.run_to_end(story.start())
    assert (done.pause().status, done.resume().status) == ("complete", "complete")
    stopped = story.start().terminate()
    assert (stopped.pause().status, stopped.resume().status) == ("terminated", "terminated")
    fresh = story.start()
    assert fresh.resume().status == "queued"
    assert fresh.pause().pause().status == "paused"


def test_a_pause_of_one_instance_leaves_its_neighbours_alone(gate: Gate) -> None:
    @workflow
    async def story(step: WorkflowStep, params: str) -> str:
        if params == "held":
            await step.do("gate", gate)
        return await step.do("work", lambda: params)

    held = story.start("held")
    with shifts.running_shift():
        assert gate.entered.wait(60)
        held.pause()
        assert shifts.wait_for(story.start("free")).output == "free"
        gate.let_out.set()
        shifts.wait_for(held, "paused")
    shifts.wait_until(lambda: held.refresh().owner is None)
