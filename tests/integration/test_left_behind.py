"""A body that does not end costs only its own step; nothing waits for it, and the worker can name it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator

import pytest
from django.db import OperationalError

from engine import StepContext, WorkflowStep, workflow
from engine.worker.bodies import attempt, sessions, threads
from engine.worker.bodies.attempt import Bodies
from tests.records import outcomes, statuses
from tests.shifts import run_to_end, running_shift, wait_for, wait_until

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    one = threading.Event()
    yield one
    one.set()


def test_a_worker_says_what_is_left_of_its_bodies_and_waits_for_none(
    gate: threading.Event, bodies: list[Bodies]
) -> None:
    async def deaf() -> None:
        while not gate.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    async def in_a_thread() -> None:
        await asyncio.to_thread(gate.wait, 60)

    def hang(ctx: StepContext) -> None:
        gate.wait(60)

    @workflow
    async def stubborn(step: WorkflowStep) -> None:
        await asyncio.wait(
            [step.do(fn.__name__, fn, timeout=0.2, max_attempts=1) for fn in (deaf, in_a_thread, hang)]
        )

    instance = stubborn.start()
    with running_shift():
        wait_for(instance)
        [one] = bodies
        where = f"attempt 1, of instance stubborn/{instance.id}"
        wait_until(lambda: len(one.left) == 3)
        assert sorted(one.left) == [
            f'a call in a thread by step "in_a_thread", {where}',
            f'step "deaf", {where}',
            f'step "hang", {where}',
        ]
        began = time.monotonic()
        one.stop()
        assert time.monotonic() - began < 20  # what is left would take 60
        assert len(one.left) == 3
        gate.set()
        wait_until(lambda: one.left == [])
    assert statuses(instance) == dict.fromkeys(("deaf", "in_a_thread", "hang"), "errored")


def test_a_shift_ends_although_a_call_in_a_thread_never_does(gate: threading.Event) -> None:
    @workflow
    async def calls(step: WorkflowStep) -> None:
        async def body() -> None:
            await asyncio.to_thread(gate.wait, 60)

        await step.do("call", body, timeout=0.1, max_attempts=1)

    instance = calls.start()
    with running_shift():
        wait_for(instance)
        began = time.monotonic()
    assert time.monotonic() - began < 20
    assert not gate.is_set()


def test_threads_of_calls_are_bounded_and_say_when_all_are_stuck(
    gate: threading.Event, bodies: list[Bodies], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "THREAD_CALLS", 2)
    monkeypatch.setattr(threads, "STUCK_SECONDS", 0.0)

    @workflow
    async def calls(step: WorkflowStep) -> None:
        async def body(ctx: StepContext) -> None:
            await asyncio.gather(*(asyncio.to_thread(gate.wait, 60) for _ in range(1 + ctx.attempt)))

        # The threads of the first attempt are replaced, those of the second are not; its third call waits for one.
        await step.do("call", body, timeout=0.2, max_attempts=2, delay=0)

    instance = calls.start()
    with running_shift():
        wait_for(instance)
        [one] = bodies
        assert (one.all_stuck, one._elsewhere.stuck, one._elsewhere.queued) == (True, 4, 0)
        gate.set()
        wait_until(lambda: not one.all_stuck)


@pytest.mark.second_tier
def test_the_process_exits_with_calls_and_bodies_that_never_end() -> None:
    """Nothing joins their threads"""
    program = """
        import asyncio, threading
        from engine.worker.bodies.thread_calls import DaemonExecutor
        from engine.worker.bodies.threads import Threads

        async def main():
            pool = Threads(2, name="call", keeps_sessions=False)
            asyncio.get_running_loop().set_default_executor(DaemonExecutor(pool))
            threads = Threads(1)
            threads.submit(threading.Event().wait)
            try:
                await asyncio.wait_for(asyncio.to_thread(threading.Event().wait), 0.2)
            except TimeoutError:
                print("stuck:", pool.stuck)

        asyncio.run(main())
    """
    setup = "import os, django; os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'tests.settings'); django.setup()\n"
    done = subprocess.run(
        [sys.executable, "-c", setup + textwrap.dedent(program)], capture_output=True, text=True, timeout=40
    )
    assert (done.returncode, done.stdout.strip()) == (0, "stuck: 1"), done.stderr


def test_a_cancelled_body_that_waits_for_a_thread_never_begins(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch, bodies: list[Bodies]
) -> None:
    monkeypatch.setattr(attempt, "SYNC_BODIES", 1)
    ran: list[str] = []

    @workflow
    async def holds(step: WorkflowStep) -> None:
        await step.do("hold", gate.wait, 60)

    @workflow
    async def waits(step: WorkflowStep) -> str:
        waiting = asyncio.ensure_future(step.do("wait", ran.append, "began"))
        await step.do("moment", asyncio.sleep, 0.1)
        waiting.cancel()
        return await step.do("after", async_after)

    async def async_after() -> str:
        return "gone on"

    holding = holds.start()
    with running_shift():
        wait_until(lambda: bool(bodies) and bodies[0].threads.running == 1)
        waiting = waits.start()
        wait_for(waiting)
        assert (waiting.output, statuses(waiting)["wait"]) == ("gone on", "cancelled")
        assert bodies[0].threads.queued == 0
        gate.set()
        wait_for(holding)
    assert ran == []


@pytest.mark.parametrize("atomic", [False, True])
def test_a_body_that_is_ended_while_its_thread_is_made_ready_never_begins(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch, bodies: list[Bodies], atomic: bool
) -> None:
    """Old connections are closed before a body, which a server that does not answer holds up."""
    is_asked, ran = threading.Event(), list[str]()

    def renew() -> None:
        if not is_asked.is_set():
            is_asked.set()
            gate.wait(60)

    monkeypatch.setattr(sessions, "renew", renew)

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("body", ran.append, "began", atomic=atomic)

    instance = story.start()
    with running_shift():
        assert is_asked.wait(60)
        instance.terminate()
        wait_until(lambda: bodies[0].threads.given_up != [])
        gate.set()
        wait_until(lambda: bodies[0].left == [])
    assert (ran, statuses(instance)) == ([], {"body": "cancelled"})


# Backends that fail in unexpected places


def test_a_thread_and_its_attempt_outlive_a_failure_to_renew_its_connections(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(attempt, "SYNC_BODIES", 1)
    calls: list[int] = []

    def fail_after_the_first_body() -> None:
        calls.append(len(calls))
        if calls[-1] == 1:
            raise OperationalError("a foreign backend")

    monkeypatch.setattr(sessions, "renew", fail_after_the_first_body)

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        return [await step.do(f"n{n}", str, n, max_attempts=1) for n in range(3)]

    assert run_to_end(story.start()).output == ["0", "1", "2"]
    assert len(calls) == 6  # before and after each
    assert "renewing the database connections of a thread failed" in caplog.text


def test_a_failure_to_renew_them_before_a_body_costs_an_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "SYNC_BODIES", 1)
    calls: list[int] = []

    def fail_at_first() -> None:
        calls.append(len(calls))
        if not calls[-1]:
            raise OperationalError("a foreign backend")

    monkeypatch.setattr(sessions, "renew", fail_at_first)

    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.do("n", str, 1, delay=0)

    instance = run_to_end(story.start())
    assert (instance.output, outcomes(instance, "n")) == ("1", ["errored", "complete"])
