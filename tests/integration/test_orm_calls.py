"""The ORM calls of async bodies: their connections are renewed, and a call that hangs costs its own step only."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections

from engine import StepContext, WorkflowStep, workflow
from engine.models import Instance
from engine.worker.bodies import attempt
from engine.worker.bodies.attempt import Bodies
from tests.records import outcomes
from tests.shifts import run_to_end, running_shift, wait_for, wait_until

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    one = threading.Event()
    yield one
    one.set()


def session() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


async def ask_session() -> int:
    return await sync_to_async(session)()


def cut(pid: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


@pytest.fixture
def with_settings(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the connections that are made from now on have these settings."""

    def change(**settings: object) -> None:
        for name, value in settings.items():
            monkeypatch.setitem(connections.settings["default"], name, value)

    return change


def story(times: int = 2, **options: Any) -> Any:
    @workflow
    async def asks(step: WorkflowStep) -> list[int]:
        return [await step.do(f"ask {n}", ask_session, delay=0, **options) for n in range(times)]

    return asks


def test_a_connection_that_was_cut_fails_one_call_and_is_renewed(
    monkeypatch: pytest.MonkeyPatch, with_settings: Any
) -> None:
    monkeypatch.setattr(attempt, "ORM_CALLS", 1)
    with_settings(CONN_HEALTH_CHECKS=False)
    asks = story(3)
    with running_shift():
        first = wait_for(asks.start())
        cut(first.output[-1])
        second = wait_for(asks.start())
    assert len(set(first.output)) == 1  # it is kept from body to body
    assert (second.status, len(set(second.output))) == ("complete", 1)
    assert [outcomes(second, f"ask {n}") for n in range(3)] == [["errored", "complete"], *[["complete"]] * 2]


def test_with_health_checks_it_fails_none(monkeypatch: pytest.MonkeyPatch, with_settings: Any) -> None:
    monkeypatch.setattr(attempt, "ORM_CALLS", 1)
    with_settings(CONN_HEALTH_CHECKS=True)
    asks = story()
    with running_shift():
        first = wait_for(asks.start())
        cut(first.output[-1])
        second = wait_for(asks.start())
    assert [outcomes(second, f"ask {n}") for n in range(2)] == [["complete"]] * 2


@pytest.mark.parametrize(("max_age", "is_kept"), [(0, False), (None, True), (600, True), (0.001, False)])
def test_a_connection_lives_as_long_as_the_settings_say(
    with_settings: Any, monkeypatch: pytest.MonkeyPatch, max_age: float | None, is_kept: bool
) -> None:
    monkeypatch.setattr(attempt, "ORM_CALLS", 1)
    with_settings(CONN_MAX_AGE=max_age)

    @workflow
    async def asks(step: WorkflowStep) -> list[int]:
        found = []
        for n in range(3):
            found.append(await step.do(f"ask {n}", ask_session))
            await step.do(f"pause {n}", time.sleep, 0.05)
        return found

    found = run_to_end(asks.start()).output
    assert (len(set(found)) == 1) is is_kept


def test_a_body_goes_through_a_cursor_although_others_come_and_go(
    with_settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one thread, with a connection that no body keeps for the next"""
    monkeypatch.setattr(attempt, "ORM_CALLS", 1)
    with_settings(CONN_MAX_AGE=0)
    Instance.objects.bulk_create(
        Instance(workflow="other", id=f"i{n}", status="paused", params={}, paused_at="2026-01-01T00:00:00Z")
        for n in range(20)
    )

    @workflow
    async def asks(step: WorkflowStep) -> list[Any]:
        async def read() -> int:
            count = 0
            async for _ in Instance.objects.filter(workflow="other").aiterator(chunk_size=2):
                await asyncio.sleep(0.01)
                count += 1
            return count

        reading = asyncio.ensure_future(step.do("read", read, max_attempts=1))
        for n in range(5):
            await step.do(f"ask {n}", ask_session, max_attempts=1)
        return [await reading]

    assert run_to_end(asks.start()).output == [20]


def test_a_call_that_hangs_costs_its_own_step_only(gate: threading.Event, bodies: list[Bodies]) -> None:
    @workflow
    async def hangs(step: WorkflowStep) -> None:
        async def body() -> None:
            await sync_to_async(gate.wait)(60)

        await step.do("hang", body, timeout=0.3, max_attempts=1)

    asks = story(8, timeout="10s", max_attempts=1)
    with running_shift():
        guilty = wait_for(hangs.start())
        others = [wait_for(asks.start()) for _ in range(2)]
        [one] = bodies
        assert (guilty.error["type"], one._orm.stuck) == ("StepTimeoutError", 1)
        hung = f'a call in a thread by step "hang", attempt 1, of instance hangs/{guilty.id}'
        # The last call of the others may still be on its way out of its thread.
        wait_until(lambda: one.left == [hung])
        gate.set()
        wait_until(lambda: one._orm.stuck == 0)
    assert [other.status for other in others] == ["complete"] * 2


def test_calls_that_wait_behind_one_that_hangs_move_to_another_thread(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "ORM_CALLS", 2)
    hung = threading.Semaphore(0)

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        async def hang() -> None:
            def wait() -> None:
                hung.release()
                gate.wait(60)

            await sync_to_async(wait)()

        async def ask_often(ctx: StepContext) -> int:
            first = await ask_session()
            await asyncio.sleep(0.1)
            await ask_session()
            return int(first > 0)

        hanging = asyncio.ensure_future(step.do("hang", hang, timeout=0.5, max_attempts=1))
        asking = [step.do(f"ask {n}", ask_often, timeout="20s", max_attempts=1) for n in range(6)]
        found = await asyncio.gather(*asking)
        await asyncio.wait([hanging])
        return list(found)

    instance = run_to_end(story.start())
    assert (instance.output, outcomes(instance, "hang")) == ([1] * 6, ["timed_out"])


def test_a_worker_whose_threads_for_them_are_all_stuck_says_so(
    gate: threading.Event, bodies: list[Bodies], monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.worker.bodies import threads

    monkeypatch.setattr(attempt, "ORM_CALLS", 2)
    monkeypatch.setattr(threads, "STUCK_SECONDS", 0.0)

    @workflow
    async def hangs(step: WorkflowStep) -> None:
        async def body() -> None:
            await sync_to_async(gate.wait)(60)

        await asyncio.wait([step.do(f"hang {n}", body, timeout=0.1, max_attempts=1) for n in range(2)])

    with running_shift():
        wait_for(hangs.start())
        [one] = bodies
        assert (one._orm.stuck, one.all_stuck) == (2, True)
        gate.set()
        wait_until(lambda: not one.all_stuck)
