"""Back-offs and sleeps that people end early: `retry_now` and `wake_now`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from engine import (
    InstancePausedError,
    NothingToRetryError,
    NothingToWakeError,
    RollbackContext,
    StepContext,
    WorkflowStep,
    workflow,
)
from engine.models import Attempt, Audit, Instance
from tests.records import outcomes, statuses, step
from tests.stories import run_to_end, running_shift, wait_for, wait_until
from tests.travel import skip_wait
from tests.violations import violations

HOURLY: dict[str, Any] = {"max_attempts": 3, "delay": "1h", "backoff": "constant", "jitter": 0}


@pytest.fixture(autouse=True)
def _verified() -> Iterator[None]:
    yield
    assert violations() == []


class Fragile:
    """A body that fails a number of times."""

    def __init__(self, failures: int = 1) -> None:
        self.left = failures
        self.keys: list[str] = []

    def __call__(self, ctx: StepContext) -> int:
        self.keys.append(ctx.idempotency_key)
        if self.left:
            self.left -= 1
            raise ConnectionError("the mail server is down")
        return ctx.attempt


def audited(instance: Instance) -> list[tuple[str, str, str, Any]]:
    rows = Audit.objects.filter(instance_id=instance.id).order_by("key")
    return list(rows.values_list("verb", "actor", "reason", "data"))


def gap(instance: Instance, name: str = "mail") -> timedelta:
    """Return the time between the first two attempts."""
    rows = Attempt.objects.filter(instance=instance, step_seq=step(instance, name).seq).order_by("number")
    first, second, *_ = rows
    assert first.finished_at is not None
    return second.started_at - first.finished_at


# retry_now


def test_the_next_attempt_starts_now_with_the_same_key_and_counts_as_always() -> None:
    body = Fragile()

    @workflow
    async def story(step: WorkflowStep) -> int:
        return await step.do("mail", body, **HOURLY)

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        assert instance.waiting_for == "retry"
        stored = step(instance, "mail")
        before = (stored.options, stored.attempts)
        assert instance.retry_now(by="ada", reason="it is up again") is instance
        assert (step(instance, "mail").options, step(instance, "mail").attempts) == before
        wait_for(instance)
    assert (instance.output, len(body.keys), len({*body.keys})) == (2, 2, 1)
    assert gap(instance) < timedelta(minutes=50)
    data = {"steps": ["mail"], "total": 1}
    assert audited(instance) == [("retry_now", "ada", "it is up again", data)]


def test_the_new_time_is_stored_before_any_worker_looks() -> None:
    body = Fragile()

    @workflow
    async def story(step: WorkflowStep) -> int:
        return await step.do("mail", body, **HOURLY)

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
    assert instance.wake_at is not None
    planned = instance.wake_at
    instance.retry_now()
    row = step(instance, "mail")
    assert (row.status, row.wake_at) == ("waiting", instance.refresh().wake_at)
    assert row.wake_at is not None
    assert planned - row.wake_at > timedelta(minutes=50)


def test_a_second_failure_backs_off_as_before() -> None:
    body = Fragile(failures=2)

    @workflow
    async def story(step: WorkflowStep) -> int:
        return await step.do("mail", body, **HOURLY)

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.retry_now()
        wait_until(lambda: outcomes(instance, "mail") == ["errored", "errored"])
        wait_for(instance, "waiting")
        second = Attempt.objects.get(instance=instance, number=2)
        planned = step(instance, "mail").wake_at
        assert second.finished_at is not None
        assert planned is not None
        assert planned - second.finished_at > timedelta(minutes=50)
        skip_wait(instance)
        wait_for(instance)
    assert (instance.output, gap(instance) < timedelta(minutes=50)) == (3, True)


def test_all_steps_that_back_off_are_retried_and_those_that_sleep_are_not() -> None:
    bodies = [Fragile(), Fragile()]

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        results = await asyncio.gather(
            step.do("one", bodies[0], **HOURLY),
            step.do("two", bodies[1], **HOURLY),
            step.sleep("nap", "2h"),
        )
        return list(results[:2])

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.retry_now()
        assert audited(instance)[0][3] == {"steps": ["one", "two"], "total": 2}
        wait_until(lambda: statuses(instance) == {"one": "complete", "two": "complete", "nap": "waiting"})
        assert max(gap(instance, "one"), gap(instance, "two")) < timedelta(minutes=50)
        nap = step(instance, "nap")
        assert nap.wake_at is not None
        assert nap.wake_at - nap.started_at >= timedelta(hours=2)
        wait_for(instance, "waiting")
        skip_wait(instance)
        wait_for(instance)
    assert instance.output == [2, 2]


def test_items_of_a_map_and_rollbacks_are_retried() -> None:
    failed: list[str] = []

    def once(item: str, index: int) -> str:
        if item not in failed:
            failed.append(item)
            raise ConnectionError("later")
        return item

    def undo(ctx: RollbackContext) -> None:
        if ctx.attempt == 1:
            raise ConnectionError("not yet")

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.map("each", ["a", "b"], once, **HOURLY)
        await step.do("kept", str, rollback=undo, rollback_options=HOURLY)
        await step.fail("on purpose")

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.retry_now(by="ada")
        wait_until_rolling_back(instance)
        instance.retry_now(by="bob")
    run_to_end(instance)
    assert (instance.status, instance.rollback) == ("errored", "complete")
    assert [(row[1], row[3]["total"]) for row in audited(instance)] == [("ada", 2), ("bob", 1)]
    first, second = Attempt.objects.filter(instance=instance, phase="rollback").order_by("number")
    assert first.finished_at is not None
    assert second.started_at - first.finished_at < timedelta(minutes=50)


def wait_until_rolling_back(instance: Instance) -> None:
    wait_until(lambda: (instance.refresh().status, instance.rollback) == ("waiting", "running"))


def test_of_two_people_the_second_is_told_that_the_attempt_is_due() -> None:
    body = Fragile()

    @workflow
    async def story(step: WorkflowStep) -> int:
        return await step.do("mail", body, **HOURLY)

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
    instance.retry_now(by="ada")
    with pytest.raises(NothingToRetryError, match="does not back off: its next attempt is due") as refusal:
        instance.retry_now(by="bob")
    assert (refusal.value.id, refusal.value.status) == (instance.id, "waiting")
    assert [row[1] for row in audited(instance)] == ["ada"]
    assert run_to_end(instance).output == 2


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda step: step.sleep("nap", "1h"), 'it is sleeping at "nap"'),
        (lambda step: step.wait_for_event("paid"), 'it waits for event "paid" at "paid"'),
        (lambda step: step.request("ok", bool, message="?"), 'it waits for the answer to request "ok"'),
    ],
)
def test_without_a_back_off_it_says_what_the_instance_does(
    call: Callable[[WorkflowStep], Any], said: str
) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await call(step)

    instance = story.start(id="order-4711")
    with pytest.raises(NothingToRetryError, match="it is queued"):
        instance.retry_now()
    with running_shift():
        wait_for(instance, "waiting")
    with pytest.raises(NothingToRetryError) as refusal:
        instance.retry_now()
    assert str(refusal.value) == f'Instance "order-4711" of workflow "story" does not back off: {said}.'
    instance.terminate()
    with pytest.raises(NothingToRetryError, match="it is terminated"):
        instance.retry_now()
    assert [row[0] for row in audited(instance)] == ["terminate"]


def test_of_a_paused_instance_both_are_refused_with_the_advice_to_resume_it() -> None:
    body = Fragile()

    @workflow
    async def story(step: WorkflowStep) -> int:
        _, found = await asyncio.gather(step.sleep("nap", "1h"), step.do("mail", body, **HOURLY))
        return found

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
    instance.pause()
    with pytest.raises(InstancePausedError, match=r"is paused\. Resume it first, then retry"):
        instance.retry_now()
    with pytest.raises(InstancePausedError, match=r"is paused\. Resume it first, then wake"):
        instance.wake_now()
    instance.resume()
    instance.retry_now()  # queued, and its step still backs off
    instance.wake_now()
    assert run_to_end(instance).output == 2
    assert gap(instance) < timedelta(minutes=50)
    assert [row[0] for row in audited(instance)] == ["pause", "resume", "retry_now", "wake_now"]


def test_in_a_transaction_that_is_rolled_back_nothing_has_happened() -> None:
    body = Fragile()

    @workflow
    async def story(step: WorkflowStep) -> int:
        return await step.do("mail", body, **HOURLY)

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
    before = (step(instance, "mail").wake_at, instance.wake_at, instance.signals)
    with transaction.atomic():
        instance.retry_now()
        transaction.set_rollback(True)
    assert audited(instance) == []
    assert before == (step(instance, "mail").wake_at, instance.refresh().wake_at, instance.signals)


# wake_now


def test_a_sleep_ends_now_and_its_outcome_has_its_place_and_its_time() -> None:
    seen: list[datetime] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.sleep("nap", "30 days")
        seen.append(step.now())
        return await step.do("after", lambda: "done")

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.wake_now(by="ada", reason="the shop is open")
        wait_for(instance)
    nap = step(instance, "nap")
    assert (instance.output, nap.status, nap.delivery) == ("done", "complete", 1)
    assert nap.finished_at is not None
    assert nap.finished_at - nap.started_at < timedelta(days=20)
    assert {*seen} == {nap.finished_at}
    data = {"steps": ["nap"], "total": 1}
    assert audited(instance) == [("wake_now", "ada", "the shop is open", data)]


@pytest.mark.parametrize(
    ("named", "woken"),
    [
        ({}, ["nap", "nap #2", "until"]),
        ({"step": "nap"}, ["nap"]),
        ({"step": "nap", "count": 2}, ["nap #2"]),
        ({"step": "until"}, ["until"]),
    ],
)
def test_all_sleeps_end_or_the_one_that_is_named(named: dict[str, Any], woken: list[str]) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        until = step.now() + timedelta(days=1)
        await asyncio.gather(
            step.sleep("nap", "1 day"), step.sleep("nap", "1 day"), step.sleep_until("until", until)
        )

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.wake_now(**named)
        assert audited(instance)[0][3] == {"steps": woken, "total": len(woken)}
        ended = {one: "complete" if one in woken else "waiting" for one in ("nap", "nap #2", "until")}
        wait_until(lambda: statuses(instance) == ended)
        if len(woken) < len(ended):
            wait_for(instance, "waiting")
            skip_wait(instance)
        wait_for(instance)
    assert instance.status == "complete"


def test_a_step_that_does_not_sleep_is_refused_with_those_that_do() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await asyncio.gather(step.sleep("nap", "1 day"), step.wait_for_event("paid"))

    instance = story.start(id="order-4711")
    with running_shift():
        wait_for(instance, "waiting")
    with pytest.raises(NothingToWakeError) as refusal:
        instance.wake_now("paid")
    said = 'Instance "order-4711" of workflow "story" does not sleep at "paid": it is sleeping at "nap".'
    assert (str(refusal.value), refusal.value.field) == (said, "step")
    with pytest.raises(NothingToWakeError, match='at "nap" #2: it is sleeping at "nap"'):
        instance.wake_now("nap", 2)
    assert audited(instance) == []


def test_waits_for_events_and_children_are_not_ended() -> None:
    @workflow
    async def child(step: WorkflowStep) -> None:
        await step.sleep("nap", "1 day")

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.wait_for_event("paid", timeout="2 days")
        await step.run_workflow("below", child)
        return "done"

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        with pytest.raises(NothingToWakeError, match='does not sleep: it waits for event "paid" at "paid"'):
            instance.wake_now()
        instance.send_event("paid")
        wait_until_waiting_for(instance, "child")
        with pytest.raises(NothingToWakeError, match='it waits for another instance at "below"'):
            instance.wake_now()
        below = Instance.objects.get(workflow="child")
        wait_for(below, "waiting")
        below.wake_now()
    assert run_to_end(instance).output == "done"
    assert statuses(below) == {"nap": "complete"}


def wait_until_waiting_for(instance: Instance, what: str) -> None:
    wait_until(lambda: (instance.refresh().status, instance.waiting_for) == ("waiting", what))


def test_a_replay_takes_the_same_turn_after_an_early_end() -> None:
    turns: list[list[str]] = []

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        ended: list[str] = []

        async def nap(name: str, length: str) -> None:
            await step.sleep(name, length)
            ended.append(name)

        await asyncio.gather(nap("short", "1 day"), nap("long", "2 days"))
        await step.wait_for_event("go")
        turns.append(ended)
        return ended

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.wake_now("long")
        wait_until(lambda: statuses(instance) == {"short": "waiting", "long": "complete"})
        wait_for(instance, "waiting")
        skip_wait(instance)
        wait_until_waiting_for(instance, "event")
        instance.send_event("go")
        wait_for(instance)
    assert instance.output == ["long", "short"]
    assert turns == [["long", "short"]]


def test_each_has_an_async_twin() -> None:
    body = Fragile()

    @workflow
    async def story(step: WorkflowStep) -> int:
        await step.sleep("nap", "1 day")
        return await step.do("mail", body, **HOURLY)

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        async_to_sync(instance.awake_now)(by="ada")
        wait_until_waiting_for(instance, "retry")
        async_to_sync(instance.aretry_now)(by="ada")
        wait_for(instance)
    assert [row[0] for row in audited(instance)] == ["wake_now", "retry_now"]
