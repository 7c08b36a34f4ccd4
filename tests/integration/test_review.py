"""Calls that share a step, signals that overtake an answer, and what a worker leaves behind: rare orders, forced."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from engine import WorkflowStep, workflow
from engine.models import Instance, Step
from engine.replay.cycle import Cycle
from engine.replay.records.history import Page
from engine.values.errors import EventTimeoutError
from engine.worker import shift
from engine.worker.bodies.attempt import Bodies
from engine.worker.database.clock import DatabaseClock, ticks_ns
from tests.hand.host import NOW_US, HandHost, answer, cycle_of, end_body, event, take
from tests.shifts import run_to_end, running_shift, wait_for, wait_until

pytestmark = [pytest.mark.usefixtures("own_registry"), pytest.mark.django_db(transaction=True)]


def slow() -> int:
    time.sleep(0.3)
    return 1


def one() -> int:
    return 1


@pytest.mark.parametrize("cancelled", [0, 1])
def test_a_step_goes_on_while_one_of_the_calls_that_share_it_waits(cancelled: int) -> None:
    @workflow(step_identity="name")
    async def sharing(step: WorkflowStep) -> int:
        calls = [asyncio.ensure_future(step.do("x", slow)) for _ in range(2)]
        await step.sleep("nap", "50ms")
        calls.pop(cancelled).cancel()
        value = await calls[0]
        await step.sleep("park", "10ms")
        return value

    instance = run_to_end(sharing.start())
    assert (instance.status, instance.output) == ("complete", 1), instance.error


def test_what_one_of_two_calls_got_is_what_a_later_call_gets() -> None:
    """Though the first of the two was cancelled, and so is not the one that knows."""
    ran: list[int] = []

    def counted() -> int:
        ran.append(1)
        return slow()

    @workflow(step_identity="name")
    async def sharing(step: WorkflowStep) -> int:
        first, second = [asyncio.ensure_future(step.do("x", counted)) for _ in range(2)]
        await step.sleep("nap", "50ms")
        first.cancel()
        value = await second
        await step.sleep("park", "10ms")
        return value + await step.do("x", slow)

    assert run_to_end(sharing.start()).output == 2
    assert ran == [1]


def test_calls_that_share_a_finished_step_may_come_in_any_number() -> None:
    @workflow(step_identity="name")
    async def often(step: WorkflowStep) -> list[int]:
        async def twice() -> int:
            return await step.do("x", one) + await step.do("x", one)

        await step.do("x", one)
        return list(await asyncio.gather(twice(), twice(), step.do("x", one), twice()))

    instance = run_to_end(often.start())
    assert (instance.status, instance.output) == ("complete", [2, 2, 1, 2]), instance.error


def test_a_step_kept_back_while_its_instance_runs_alone_starts_when_the_other_is_cancelled() -> None:
    @workflow
    async def alone(step: WorkflowStep) -> int:
        first = asyncio.ensure_future(step.do("first", asyncio.sleep, 30))
        second = asyncio.ensure_future(step.do("second", one))
        await step.sleep("nap", "100ms")
        first.cancel()
        return await second

    instance = alone.start()
    Instance.objects.filter(key=instance.key).update(quarantined=True)
    assert run_to_end(instance).output == 1


def test_a_signal_that_overtakes_the_answer_about_events_is_looked_into_too() -> None:
    @workflow
    async def waits(step: WorkflowStep) -> Any:
        return (await step.wait_for_event("go", timeout=None)).payload

    host = HandHost()
    cycle = cycle_of(waits, host)
    parking = take(cycle)
    cycle.written("running", 1, leave=parking.leave, has_left=False)
    cycle.on_signals("running", 2)
    cycle.on_events(Page([], NOW_US), 1)
    cycle.advance()
    assert (host.asked_events, cycle.writes.leave) == (2, None)
    cycle.on_events(Page([event(1, "go")], NOW_US), 2)
    cycle.advance()
    assert cycle.writes.consumed.keys() == {1}


def test_a_wait_that_timed_out_after_a_pause_says_its_own_timeout() -> None:
    @workflow
    async def waits(step: WorkflowStep) -> float:
        try:
            await step.wait_for_event("go", timeout="1s")
        except EventTimeoutError as error:
            return error.timeout
        return 0

    host = HandHost()
    before = cycle_of(waits, host)
    answer(before, take(before))
    (record,) = before.history.steps.values()
    host.time_us = record.wake_us = NOW_US + 60_000_000
    before.history.events = Page([], host.time_us)
    again = Cycle(host, waits, before.claimed, before.history)
    again.begin()
    again.advance()
    assert again.writes.leave is not None
    assert again.writes.leave.output == "1.0"


def test_an_unfinished_step_that_the_replay_cancels_before_it_begins_is_recorded_so() -> None:
    @workflow
    async def race(step: WorkflowStep) -> None:
        loser = asyncio.ensure_future(step.do("loser", str))
        await step.do("winner", str)
        loser.cancel()
        await step.wait_for_event("go", timeout=None)

    host = HandHost()
    before = cycle_of(race, host)
    answer(before, take(before))
    end_body(before, host, "winner")
    steps = {record.name: record for record in before.history.steps.values()}
    lost = host.bodies["loser"][1]
    # The worker died after it had written the winner, before it wrote that the loser is cancelled.
    steps["loser"].status, steps["loser"].finished_us = "running", None
    lost.status = "running"
    before.history.running = {lost.step_seq: lost}
    before.history.steps = {k: v for k, v in before.history.steps.items() if v.name in ("winner", "loser")}
    again = Cycle(host, race, before.claimed, before.history)
    again.begin()
    again.advance()
    assert (steps["loser"].status, lost.status) == ("cancelled", "lost")
    assert again.writes.steps.keys() >= {steps["loser"].seq}


def test_a_deadline_that_was_due_stays_due_after_a_slow_answer() -> None:
    clock = DatabaseClock()
    clock.set(NOW_US, sent_ns=ticks_ns(), received_ns=ticks_ns())
    due_us = clock.due_us()
    clock.set(NOW_US, sent_ns=ticks_ns(), received_ns=ticks_ns() + 50_000_000)
    assert clock.due_us() >= due_us


def test_a_worker_that_was_stopped_with_a_statement_on_its_way_does_not_write_of_the_future() -> None:
    clock, sent_ns = DatabaseClock(), ticks_ns()
    clock.set(NOW_US, sent_ns=sent_ns, received_ns=sent_ns)
    stopped_us = 12_000_000
    clock.set(NOW_US + stopped_us, sent_ns=sent_ns, received_ns=sent_ns + stopped_us * 1000)
    assert clock.now_us() < NOW_US + stopped_us // 2


def test_a_slow_answer_counts_when_the_database_has_another_time_than_was_known() -> None:
    clock, sent_ns = DatabaseClock(), ticks_ns()
    clock.set(NOW_US, sent_ns=sent_ns, received_ns=sent_ns)
    clock.set(NOW_US + 60_000_000, sent_ns=sent_ns, received_ns=sent_ns + 2_000_000_000)
    assert clock.now_us() >= NOW_US + 58_000_000


async def test_a_body_that_is_cancelled_before_its_first_turn_lets_go() -> None:
    @workflow
    async def race(step: WorkflowStep) -> None:
        await step.do("body", asyncio.sleep, 30)

    host = HandHost()
    cycle = cycle_of(race, host)
    bodies = Bodies(asyncio.get_running_loop(), host.now_us)
    host.run_body = bodies.run  # type: ignore[method-assign]
    answer(cycle, take(cycle))
    (attempt,) = cycle.steps.attempts()
    bodies.cancel(cycle, attempt)
    await asyncio.sleep(0.01)
    assert cycle.steps.bodies == {}
    bodies.stop()


def test_an_async_generator_that_a_handler_leaves_is_closed_by_its_handler() -> None:
    @workflow
    async def reads(step: WorkflowStep) -> str:
        async def pages() -> AsyncIterator[int]:
            try:
                for page in range(3):
                    yield page
            finally:
                await step.do("close", one)

        async for _ in pages():
            await step.sleep("nap", "20ms")
            break
        await step.wait_for_event("go")
        return "read"

    instance = reads.start()
    with running_shift():
        wait_until(lambda: Step.objects.filter(name="close", status="complete").exists())
        instance.send_event("go")
        wait_for(instance)
    assert instance.output == "read"
    assert set(Step.objects.values_list("name", "status")) == {
        ("nap", "complete"),
        ("close", "complete"),
        ("go", "complete"),
    }


def test_terminating_an_instance_cancels_its_body_also_while_the_shift_ends() -> None:
    begun, cancelled, stops = threading.Event(), threading.Event(), threading.Event()

    @workflow
    async def long(step: WorkflowStep) -> None:
        async def body() -> None:
            begun.set()
            try:
                await asyncio.sleep(8)
            except asyncio.CancelledError:
                cancelled.set()

        await step.do("body", body)

    def work() -> None:
        shift.run(shift.Terms(slots=4, name="short", should_stop=stops.is_set))

    instance = long.start()
    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(60)
    stops.set()
    time.sleep(1)
    instance.terminate()
    assert cancelled.wait(4)
    thread.join(60)
