"""`retry_now` and `wake_now` while a worker holds the instance, and beside the timer that is due anyway."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections

from engine import NothingToRetryError, WorkflowStep, workflow
from engine.models import Attempt, Audit, Instance
from tests.records import attempts, outcomes, statuses, step
from tests.shifts import running_shift, wait_for, wait_until
from tests.violations import violations

pytestmark = pytest.mark.first_tier

HOURLY: dict[str, Any] = {"max_attempts": 3, "delay": "1h", "jitter": 0}


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    one = threading.Event()
    yield one
    one.set()


async def passed(gate: threading.Event) -> None:
    while not gate.is_set():
        await asyncio.sleep(0.005)


class Fragile:
    """A body that fails once."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls == 1:
            raise ConnectionError("down")
        return "sent"


def backs_off(instance: Instance, name: str = "mail") -> Callable[[], bool]:
    return lambda: statuses(instance).get(name) == "waiting" and step(instance, name).wake_at is not None


def test_a_back_off_beside_a_running_body_ends(
    engine_db: None, own_registry: None, gate: threading.Event
) -> None:
    body = Fragile()

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        return list(await asyncio.gather(step.do("long", passed, gate), step.do("mail", body, **HOURLY)))

    instance = story.start()
    with running_shift():
        wait_until(backs_off(instance))
        before = instance.refresh().wake_at
        instance.retry_now(by="ada")
        assert (instance.status, instance.wake_at) == ("running", before)  # the lease stays as it is
        wait_until(lambda: statuses(instance)["mail"] == "complete")
        assert statuses(instance)["long"] == "running"
        gate.set()
        wait_for(instance)
    assert (instance.output, body.calls) == ([None, "sent"], 2)
    assert outcomes(instance, "mail") == ["errored", "complete"]


def test_a_back_off_of_a_nested_step_ends(engine_db: None, own_registry: None) -> None:
    body = Fragile()

    @workflow
    async def story(step: WorkflowStep) -> str:
        async def around() -> str:
            return await step.do("mail", body, **HOURLY)

        return await step.do("around", around)

    instance = story.start()
    with running_shift():
        wait_until(backs_off(instance))
        instance.retry_now(by="ada")
        wait_for(instance)
    assert (instance.output, body.calls) == ("sent", 2)
    assert outcomes(instance, "around") == ["complete"]


def test_a_sleep_beside_a_running_body_ends(
    engine_db: None, own_registry: None, gate: threading.Event
) -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        async def napping() -> str:
            await step.sleep("nap", "1 day")
            return await step.do("after", lambda: "woken")

        _, found = await asyncio.gather(step.do("long", passed, gate), napping())
        return found

    instance = story.start()
    with running_shift():
        wait_until(lambda: statuses(instance) == {"long": "running", "nap": "waiting"})
        instance.wake_now(by="ada")
        wait_until(lambda: statuses(instance).get("after") == "complete")
        gate.set()
        wait_for(instance)
    assert instance.output == "woken"


def test_a_step_whose_delay_function_has_not_answered_does_not_back_off_yet(
    engine_db: None, own_registry: None, gate: threading.Event
) -> None:
    body = Fragile()
    asked = threading.Event()

    async def delay(ctx: Any, error: Any) -> timedelta:
        asked.set()
        await passed(gate)
        return timedelta(0)

    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.do("mail", body, max_attempts=2, delay=delay)

    instance = story.start()
    with running_shift():
        assert asked.wait(60)
        with pytest.raises(NothingToRetryError, match="does not back off: it is running"):
            instance.retry_now()
        gate.set()
        wait_for(instance)
    assert instance.output == "sent"


@pytest.mark.parametrize("turn", range(12))
def test_beside_the_due_timer_there_is_one_attempt_and_one_entry_for_what_was_done(
    turn: int, engine_db: None, own_registry: None
) -> None:
    body = Fragile()
    delay = timedelta(milliseconds=20 * turn)

    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.do("mail", body, max_attempts=2, delay=delay, jitter=0)

    instance = story.start()
    people = ["ada", "bob", "eve"]
    begin = threading.Barrier(len(people))

    def ask(name: str) -> str:
        try:
            begin.wait(60)
            Instance.objects.get(key=instance.key).retry_now(by=name)
            return name
        except NothingToRetryError:
            return ""
        finally:
            connections.close_all()

    with running_shift(), ThreadPoolExecutor(len(people)) as pool:
        wait_until(lambda: body.calls > 0)
        done = {*pool.map(ask, people)} - {""}
        wait_for(instance)
    assert (instance.output, body.calls) == ("sent", 2)
    assert outcomes(instance, "mail") == ["errored", "complete"]
    assert {*Audit.objects.filter(verb="retry_now").values_list("actor", flat=True)} == done
    assert len(done) <= 1
    assert violations() == []


@pytest.mark.parametrize("turn", range(8))
def test_while_the_worker_parks_it_is_not_overlooked(turn: int, engine_db: None, own_registry: None) -> None:
    """The call comes at once when the back-off is recorded, so often before the instance has parked."""
    body = Fragile()

    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.do("mail", body, **HOURLY)

    instance = story.start()
    with running_shift():
        while True:
            try:
                instance.retry_now(by="ada")
                break
            except NothingToRetryError:
                continue
        wait_for(instance)
    assert outcomes(instance, "mail") == ["errored", "complete"]
    assert Attempt.objects.filter(instance=instance).count() == len(attempts(instance, "mail")) == 2
    assert violations() == []
