"""Events: first in, first out, each to one wait, whether a worker holds the instance or not."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import pytest

from engine import (
    DedupConflictError,
    Event,
    EventTimeoutError,
    InstanceFinishedError,
    InvalidNameError,
    InvalidParamsError,
    WorkflowStep,
    workflow,
)
from engine.models import Event as Row
from engine.models import Instance
from tests import shifts
from tests.records import crash, statuses, step, steps
from tests.stories import run_to_end, running_shift, wait_for, wait_until
from tests.travel import age, skip_wait


@dataclass
class Decision:
    kind: Literal["approved", "rejected"]
    comment: str = ""


def events(instance: Instance) -> list[tuple[str, str]]:
    """Return type and state of every event, as they were sent."""
    return list(Row.objects.filter(instance=instance).order_by("key").values_list("type", "state"))


def test_an_event_that_comes_during_the_wait_is_returned_whole() -> None:
    """CF-46"""
    seen: list[Any] = []

    @workflow
    async def story(step: WorkflowStep) -> Any:
        event = await step.wait_for_event("approval")
        seen.append(event)
        await step.sleep("park", 0.01)
        return event.payload

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        assert instance.waiting_for == "event"
        sent = instance.send_event("approval", {"ok": [1, None]}, by="ada")
        wait_for(instance)
    assert instance.output == {"ok": [1, None]}
    assert len(seen) >= 2
    for event in seen:
        assert (event.type, event.payload, event.sent_by) == ("approval", {"ok": [1, None]}, "ada")
        assert event.received_at == sent.received_at
    assert events(instance) == [("approval", "consumed")]


def test_events_sent_before_the_first_wait_are_delivered_in_order() -> None:
    """CF-47, LC-16"""

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        return [(await step.wait_for_event("next", "item")).payload for _ in range(3)]

    instance = story.start()
    for number in (1, 2, 3):
        instance.send_event("item", number)
    run_to_end(instance)
    assert instance.output == [1, 2, 3]


def test_of_two_waits_the_older_gets_the_one_event() -> None:
    """CF-49"""

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        return [e.payload for e in await asyncio.gather(step.wait_for_event("x"), step.wait_for_event("x"))]

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.send_event("x", "first")
        wait_until(lambda: "complete" in statuses(instance).values())
        wait_for(instance, "waiting")
        assert steps(instance) == [("event", "x", 1, "complete"), ("event", "x", 2, "waiting")]
        instance.send_event("x", "second")
        wait_for(instance)
    assert instance.output == ["first", "second"]


def test_a_wait_takes_any_of_a_list_of_types_and_leaves_the_others() -> None:
    """HC-07, HC-08: an event of another type stays for a later wait"""

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        first = await step.wait_for_event("decision", ["approved", "rejected"])
        other = await step.wait_for_event("other")
        return [first.type, first.payload, other.payload]

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.send_event("other", 1)
        wait_for(instance, "waiting")
        assert statuses(instance) == {"decision": "waiting"}
        instance.send_event("rejected", 2)
        wait_for(instance)
    assert instance.output == ["rejected", 2, 1]


def test_a_declared_event_is_checked_where_it_is_sent_and_typed_where_it_arrives() -> None:
    """LC-38, HC-08: the sender's error, nothing delivered, still waiting"""
    decision = Event("decision", Decision)
    seen: list[Any] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        event = await step.wait_for_event("ask", decision)
        seen.append(event.payload)
        await step.sleep("park", 0.01)
        return event.payload.kind

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        for event_type in ("decision", decision):
            with pytest.raises(InvalidParamsError) as caught:
                instance.send_event(event_type, {"kind": "perhaps"})
            assert caught.value.errors[0]["path"] == "kind"
        assert (instance.refresh().status, events(instance)) == ("waiting", [])
        instance.send_event("decision", {"kind": "approved"})
        wait_for(instance)
    assert instance.output == "approved"
    assert len(seen) >= 2
    assert all(one == Decision("approved") for one in seen)


def test_a_timeout_is_raised_and_raised_again_on_a_replay_without_waiting() -> None:
    """CF-50, LC-17"""
    caught: list[tuple[Any, ...]] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            await step.wait_for_event("answer", ["yes", "no"], timeout="200ms")
        except EventTimeoutError as error:
            caught.append((error.step, error.type, error.timeout, str(error)))
        await step.sleep("park", 0.01)
        return "went on"

    instance = run_to_end(story.start())
    assert instance.output == "went on"
    assert len(caught) >= 2
    assert all(one == caught[0] for one in caught)
    assert caught[0][:3] == ("answer", ["yes", "no"], 0.2)
    row = step(instance, "answer")
    assert row.finished_at - row.started_at >= timedelta(milliseconds=200)


def test_an_uncaught_timeout_ends_the_instance_as_errored() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.wait_for_event("answer", timeout=0)

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["type"]) == ("errored", "EventTimeoutError")


def test_an_event_sent_while_no_worker_is_up_is_delivered_once() -> None:
    """CF-52"""

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        first = await step.wait_for_event("go")
        try:
            second = await step.wait_for_event("go", timeout=0.1)
        except EventTimeoutError:
            return [first.payload]
        return [first.payload, second.payload]

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
    instance.send_event("go", 1)
    run_to_end(instance)
    assert instance.output == [1]


def test_an_event_that_was_consumed_is_not_delivered_again_after_a_crash() -> None:
    """CF-53"""
    runs: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        first = await step.wait_for_event("go")

        async def work() -> None:
            runs.append(1)
            if len(runs) == 1:
                await asyncio.sleep(60)

        await step.do("work", work)
        return [first.payload, (await step.wait_for_event("go")).payload]

    instance = story.start()
    instance.send_event("go", 1)
    with shifts.running_shift():
        shifts.wait_until(lambda: len(runs) == 1)
        crash()
        shifts.wait_for(instance, "waiting")
        assert statuses(instance)["go #2"] == "waiting"
        instance.send_event("go", 2)
        shifts.wait_for(instance)
    assert instance.output == [1, 2]


def test_events_sent_while_paused_are_delivered_after_the_resume() -> None:
    """CF-55"""

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        return [(await step.wait_for_event("go")).payload for _ in range(2)]

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.pause()
        instance.send_event("go", 1)
        instance.send_event("go", 2)
        assert (instance.refresh().status, statuses(instance)) == ("paused", {"go": "waiting"})
        assert [state for _, state in events(instance)] == ["buffered", "buffered"]
        instance.resume()
        wait_for(instance)
    assert instance.output == [1, 2]


@pytest.mark.parametrize(("is_in_time", "outcome"), [(True, "got it"), (False, "too late")])
def test_the_deadline_decides_also_when_nobody_was_up_at_it(is_in_time: bool, outcome: str) -> None:
    """CF-56: an event counts if it came before the deadline; a later one stays for later waits"""

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        try:
            await step.wait_for_event("go", timeout="1h")
        except EventTimeoutError:
            return ["too late", (await step.wait_for_event("late", "go")).payload]
        return ["got it", ""]

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
    if is_in_time:
        instance.send_event("go", "payload")
        age(instance, hours=2)
        Row.objects.update(received_at=step(instance, "go").wake_at - timedelta(minutes=1))
    else:
        age(instance, hours=2)
        instance.send_event("go", "payload")
    run_to_end(instance)
    assert instance.output == [outcome, "" if is_in_time else "payload"]


def test_an_events_type_may_hold_dots_and_a_hundred_characters_and_no_more() -> None:
    """CF-58: ours allows dots; too long ones are refused at the sender and at the wait"""

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        await step.wait_for_event("dots", "order.approved")
        await step.wait_for_event("long", "x" * 100)
        try:
            await step.wait_for_event("too long", "x" * 101)
        except InvalidNameError as error:
            return [str(error)]
        return []

    instance = story.start()
    instance.send_event("order.approved")
    instance.send_event("x" * 100)
    for wrong in ("x" * 101, "", " ", "a\nb", 7):
        with pytest.raises(InvalidNameError):
            instance.send_event(wrong)
    run_to_end(instance)
    [message] = instance.output
    assert "1 to 100 characters" in message
    assert len(events(instance)) == 2


def test_a_wait_finds_its_record_by_its_name_when_the_type_was_renamed() -> None:
    """LC-40: the explicit name keeps the record; an open wait continues with the types it began with"""
    type_now = ["order-ok"]

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        first = await step.wait_for_event("approval", type_now[0])
        second = await step.wait_for_event("second")
        return [first.payload, second.payload]

    instance = story.start()
    instance.send_event("order-ok", 1)
    with running_shift():
        wait_until(lambda: statuses(instance).get("second") == "waiting")
    type_now[0] = "order-approved"
    instance.send_event("second", 2)
    run_to_end(instance)
    assert instance.output == [1, 2]
    assert steps(instance) == [("event", "approval", 1, "complete"), ("event", "second", 1, "complete")]


def test_listen_waits_for_the_event_of_its_own_name_only() -> None:
    """KC-16 (recorded as done only when it comes), KC-17"""

    @workflow
    async def story(step: WorkflowStep) -> str:
        got = await step.listen("wait-for-payment")
        return f"went on with {got}"

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        assert statuses(instance) == {"wait-for-payment": "waiting"}
        instance.send_event("other", 1)
        wait_for(instance, "waiting")
        assert statuses(instance) == {"wait-for-payment": "waiting"}
        instance.send_event("wait-for-payment", 2)
        wait_for(instance)
    assert instance.output == "went on with None"
    assert events(instance) == [("other", "buffered"), ("wait-for-payment", "consumed")]


def test_a_link_opened_twice_sends_one_event() -> None:
    """HC-13: by its dedup key; another payload under it is refused, and the decision stays"""

    @workflow
    async def story(step: WorkflowStep) -> Any:
        return (await step.wait_for_event("decision")).payload

    instance = story.start()
    first = instance.send_event("decision", {"ok": True}, "link-1")
    assert instance.send_event("decision", {"ok": True}, "link-1").key == first.key
    with pytest.raises(DedupConflictError):
        instance.send_event("decision", {"ok": False}, "link-1")
    run_to_end(instance)
    assert instance.send_event("decision", {"ok": True}, "link-1").key == first.key
    assert (instance.output, events(instance)) == ({"ok": True}, [("decision", "consumed")])


def test_sending_to_a_finished_instance_is_refused() -> None:
    """Guarantee 11"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("work", str)

    instance = run_to_end(story.start())
    with pytest.raises(InstanceFinishedError):
        instance.send_event("go")
    assert events(instance) == []


def test_a_burst_of_events_is_delivered_in_order_and_each_once() -> None:
    """Guarantee 11: sent while the instance wakes, waits and parks, over and over"""
    count = 60

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        return [(await step.wait_for_event("n")).payload for _ in range(count)]

    instance = story.start()
    with shifts.running_shift():
        for number in range(count):
            instance.send_event("n", number)
        shifts.wait_for(instance)
    assert instance.output == list(range(count))
    assert set(events(instance)) == {("n", "consumed")}


def test_events_that_nobody_waits_for_yet_cost_no_replay() -> None:
    turns: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        turns.append(1)
        await asyncio.gather(step.sleep("long", "30 days"), step.wait_for_event("wake up", timeout=None))
        return [(await step.wait_for_event("item")).payload for _ in range(20)]

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_for(instance, "waiting")
        before = len(turns), instance.fence
        for number in range(20):
            instance.send_event("item", number)
        time.sleep(0.5)
        assert (len(turns), instance.refresh().fence, instance.status) == (*before, "waiting")
        skip_wait(instance)
        instance.send_event("wake up")
        shifts.wait_for(instance)
    assert instance.output == list(range(20))
