"""What a handler cannot wait for is refused with the durable twin's name; nothing it does outlives its cycle."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import textwrap
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from engine import ParkingError, StepError, WorkflowStep, workflow
from engine.models import Instance
from tests.records import statuses, step, steps
from tests.shifts import run_to_end, running_shift, wait_for, wait_until

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")


async def with_timeout() -> None:
    async with asyncio.timeout(1):
        pass


async def other_threads_call() -> None:
    asyncio.get_running_loop().call_soon_threadsafe(print)


async def clock() -> None:
    asyncio.get_running_loop().time()


async def orm() -> None:
    await Instance.objects.acount()


async def subprocess_of_asyncio() -> None:
    await asyncio.create_subprocess_exec("true")


FOREIGN: dict[str, tuple[Callable[[], Awaitable[Any]], str]] = {
    "sleep": (lambda: asyncio.sleep(0.01), "step.sleep(name, duration)"),
    "wait_for": (
        lambda: asyncio.wait_for(asyncio.get_running_loop().create_future(), 1),
        "step.sleep(name, duration)",
    ),
    "timeout": (with_timeout, "step"),
    "to_thread": (lambda: asyncio.to_thread(print), "step.do(name, fn)"),
    "socket": (lambda: asyncio.open_connection("127.0.0.1", 9), "step.do(name, fn)"),
    "subprocess": (subprocess_of_asyncio, "step.do(name, fn)"),
    "call_soon_threadsafe": (other_threads_call, "step.do(name, fn)"),
    "clock": (clock, "step.now()"),
    "async orm": (orm, "step.do(name, fn)"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_foreign_await_fails_at_once_and_names_the_durable_twin(what: str) -> None:
    call, advice = FOREIGN[what]

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("before", str)
        await call()

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["type"]) == ("errored", "ForeignAwaitError")
    assert "cannot be used in a workflow's handler" in instance.error["message"]
    assert advice in instance.error["message"]


def test_a_query_between_steps_is_refused() -> None:
    """Django sees the handler's loop, and would block it."""

    @workflow
    async def story(step: WorkflowStep) -> int:
        return Instance.objects.count()

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["type"]) == ("errored", "BetweenStepsError")


def test_a_future_of_another_loop_is_refused() -> None:
    loop = asyncio.new_event_loop()
    try:
        foreign = loop.create_future()

        @workflow
        async def story(step: WorkflowStep) -> None:
            await foreign

        instance = run_to_end(story.start())
    finally:
        loop.close()
    assert (instance.status, instance.error["type"]) == ("errored", "RuntimeError")


def test_giving_way_to_other_branches_is_no_foreign_await() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        order = []

        async def branch(number: int) -> None:
            for turn in range(2):
                order.append(number * 10 + turn)
                await asyncio.sleep(0)

        await asyncio.gather(branch(0), branch(1))
        return order

    assert run_to_end(story.start()).output == [0, 10, 1, 11]


def test_a_handler_that_waits_for_nothing_that_can_come_is_ended() -> None:
    """Nothing is open: no step, no sleep, no event could ever wake it."""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("before", str)
        await asyncio.Event().wait()

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["type"]) == ("errored", "DeadlockError")
    assert "no step, sleep or event will ever complete" in instance.error["message"]


def test_a_finally_that_runs_at_a_park_can_do_nothing() -> None:
    """Guarantee 9: the coroutines are closed, and every call of step in them is inert."""
    closed: list[str] = []
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            try:
                await step.sleep("park", 0.01)
            finally:
                closed.append("inner")
                step.log.info("cleanup")
                await step.do("cleanup", lambda: ran.append("cleanup"))
                closed.append("after the await")
        finally:
            closed.append("outer")
            with contextlib.suppress(BaseException):
                await step.fail("in finally")
        return "done"

    instance = run_to_end(story.start())
    # In the last cycle it is real. In those before both run when they are closed, and the await in one cuts it off.
    assert closed[-3:] == ["inner", "after the await", "outer"]
    assert closed[:-3] == ["inner", "outer"] * (len(closed) // 2 - 1)
    assert len(closed) >= 5
    assert ran == ["cleanup"]
    assert statuses(instance) == {"park": "complete", "cleanup": "complete"}
    assert (instance.status, instance.error["message"]) == ("errored", "in finally")


def test_a_handler_that_swallows_its_closing_parks_all_the_same() -> None:
    swallowed: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        while True:
            try:
                await step.wait_for_event("go")
                break
            except BaseException as error:  # noqa: BLE001 - what the case is about
                swallowed.append(type(error).__name__)
                with contextlib.suppress(RuntimeError):
                    await step.do("handle", str)
        return "went on"

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.send_event("go")
        wait_for(instance)
    assert instance.output == "went on"
    assert set(swallowed) <= {"GeneratorExit"}
    assert steps(instance) == [("event", "go", 1, "complete")]


@pytest.mark.parametrize("call", ["sleep", "wait_for_event", "listen", "progress"])
def test_a_durable_call_inside_a_body_is_refused(call: str) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        async def body() -> None:
            await getattr(step, call)("inner", *{"sleep": (1,)}.get(call, ()))

        await step.do("outer", body)

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["type"], instance.error["step"]) == (
        "errored",
        ParkingError.__name__,
        "outer",
    )
    assert [name for _, name, _, _ in steps(instance)] == ["outer"]
    assert step(instance, "outer").attempts == 1


def test_a_durable_call_from_a_thread_is_refused_also_while_the_handler_runs() -> None:
    is_in_handler, is_over = threading.Event(), threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> str:
        def body() -> None:
            is_in_handler.wait(60)
            try:
                step.do("from a thread", str)
            finally:
                is_over.set()

        outer = asyncio.ensure_future(step.do("outer", body, max_attempts=1))
        await step.do("first", str)
        is_in_handler.set()
        is_over.wait(60)
        try:
            await outer
        except StepError as error:
            return error.type
        return "taken"

    instance = run_to_end(story.start())
    assert instance.output == "ParkingError"
    assert statuses(instance) == {"outer": "errored", "first": "complete"}


def test_a_step_kept_beyond_its_cycle_reaches_nothing() -> None:
    """As a body or a thread may keep it that outlives the cycle."""
    kept: list[WorkflowStep] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        kept.append(step)
        await step.wait_for_event("go")

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        with pytest.raises(ParkingError):
            kept[0].do("from outside", str)
        kept[0].log.info("from outside")
        instance.send_event("go")
        wait_for(instance)
    assert steps(instance) == [("event", "go", 1, "complete")]
    assert instance.logs.count() == 0


def test_a_shift_leaves_no_connection_behind() -> None:
    """Neither of sync bodies, nor of the ORM calls of async ones."""

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        async def acount() -> int:
            return await Instance.objects.acount()

        return list(
            await asyncio.gather(
                *(step.do(f"sync {n}", Instance.objects.count) for n in range(6)),
                *(step.do(f"async {n}", acount) for n in range(6)),
            )
        )

    assert run_to_end(story.start()).output == [1] * 12
    wait_until(lambda: other_sessions() == 0, what="the end of every other session")


def other_sessions() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
        [count] = cursor.fetchone()
    return int(count)


def test_async_bodies_may_use_the_orm_side_by_side() -> None:
    """Four contexts: one that waits for its database does not hold up the other three."""
    in_database = threading.Barrier(3, timeout=10)

    @workflow
    async def story(step: WorkflowStep) -> int:
        async def body() -> int:
            from asgiref.sync import sync_to_async

            await sync_to_async(in_database.wait)()
            return await Instance.objects.acount()

        return sum(await asyncio.gather(*(step.do(f"n{n}", body, max_attempts=1) for n in range(3))))

    assert run_to_end(story.start()).output == 3


STUCK = """
    import os, sys, time
    import django
    django.setup()
    from django.conf import settings
    from django.db import connection
    settings.DATABASES["default"].update(HOST=os.environ["TEST_HOST"], NAME=os.environ["TEST_NAME"])
    connection.settings_dict.update(HOST=os.environ["TEST_HOST"], NAME=os.environ["TEST_NAME"])
    from engine import workflow
    from engine.worker import shift

    @workflow(handler_timeout="300ms")
    async def stuck(step, params: str) -> None:
        await step.do("before", str)
        while True:
            try:
                while True:
                    if params == "yields":
                        await __import__("asyncio").sleep(0)
            except BaseException:
                if params != "stubborn":
                    raise

    @workflow
    async def neighbour(step) -> str:
        return await step.do("work", lambda: "done")

    shift.run(shift.Terms(slots=8, name="stuck", should_stop=lambda: False, idle_seconds=0.3))
"""


@pytest.mark.second_tier
def test_a_handler_that_never_returns_is_interrupted_and_its_neighbours_go_on() -> None:
    """Guarantee 7: not only noticed. A signal does it, so the shift needs a main thread."""

    @workflow(handler_timeout="300ms")
    async def stuck(step: WorkflowStep, params: str) -> None: ...

    @workflow
    async def neighbour(step: WorkflowStep) -> str: ...

    stuck_ones = [stuck.start(how) for how in ("plain", "yields", "stubborn")]
    other = neighbour.start()
    done = run_in_main_thread(STUCK)
    assert done.returncode == 0, done.stderr
    for instance in stuck_ones:
        instance.refresh()
        assert (instance.status, instance.error["type"]) == ("errored", "WorkflowTimeoutError"), (
            instance.params
        )
        assert "handler_timeout of 300 ms" in instance.error["message"]
        assert statuses(instance) == {"before": "complete"}
    assert other.refresh().output == "done"


def run_in_main_thread(code: str) -> subprocess.CompletedProcess[str]:
    import os

    settings = connection.settings_dict
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=Path(__file__).parents[2],
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "TEST_HOST": settings["HOST"],
            "TEST_NAME": settings["NAME"],
        },
        capture_output=True,
        text=True,
        timeout=40,
    )
