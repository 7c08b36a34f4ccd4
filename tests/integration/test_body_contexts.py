"""Each body has a context of its own: a tenant or language that one sets is not seen by another."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone, translation

from engine import RollbackContext, StepContext, WorkflowStep, workflow
from engine.worker.bodies import attempt
from tests.shifts import run_to_end

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")

tenant: ContextVar[str] = ContextVar("tenant", default="nobody")

UNTOUCHED = ["nobody", settings.TIME_ZONE, settings.LANGUAGE_CODE]


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all bodies on one thread."""
    monkeypatch.setattr(attempt, "SYNC_BODIES", 1)


def look_and_leave() -> list[str]:
    """Return the values found, and leave others behind."""
    found = [tenant.get(), timezone.get_current_timezone_name(), translation.get_language() or ""]
    tenant.set("somebody")
    timezone.activate("Asia/Tokyo")
    translation.activate("de")
    return found


async def look_and_leave_async() -> list[str]:
    await asyncio.sleep(0)
    return look_and_leave()


def look_and_return_awaitable() -> Any:
    found = look_and_leave()

    async def later() -> list[Any]:
        return [*found, tenant.get()]

    return later()


@pytest.mark.parametrize("is_atomic", [False, True])
def test_a_sync_body_finds_nothing_that_the_one_before_on_its_thread_has_set(is_atomic: bool) -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        threads = [await step.do("thread", threading.get_ident) for _ in range(2)]
        assert len(set(threads)) == 1
        return [await step.do("look", look_and_leave, atomic=is_atomic) for _ in range(2)]

    assert run_to_end(story.start()).output == [UNTOUCHED, UNTOUCHED]


def test_an_async_body_finds_nothing_that_others_have_set() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        return [
            await step.do("sync", look_and_leave),
            await step.do("async", look_and_leave_async),
            await step.do("async again", look_and_leave_async),
            await step.do("sync again", look_and_leave),
        ]

    assert run_to_end(story.start()).output == [UNTOUCHED] * 4


def test_an_awaitable_goes_on_in_the_context_of_the_function_that_returned_it() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        return [await step.do("look", look_and_return_awaitable) for _ in range(2)]

    assert run_to_end(story.start()).output == [[*UNTOUCHED, "somebody"]] * 2


def test_nested_bodies_find_nothing_that_the_bodies_around_them_have_set() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        async def outer() -> list[Any]:
            look_and_leave()
            return [await step.do("sync", look_and_leave), await step.do("async", look_and_leave_async)]

        return await step.do("outer", outer)

    assert run_to_end(story.start()).output == [UNTOUCHED] * 2


@pytest.mark.parametrize("is_async", [False, True])
def test_delay_functions_find_nothing_that_the_body_or_each_other_have_set(is_async: bool) -> None:
    found: list[Any] = []

    def delay(ctx: StepContext, error: BaseException) -> float:
        found.append(look_and_leave())
        return 0

    async def delay_async(ctx: StepContext, error: BaseException) -> float:
        return delay(ctx, error)

    async def body(ctx: StepContext) -> None:
        look_and_leave()
        if ctx.attempt < 3:
            raise ValueError("again")

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("body", body, delay=delay_async if is_async else delay)

    run_to_end(story.start())
    assert found == [UNTOUCHED] * 2


@pytest.mark.parametrize("is_async", [False, True])
def test_rollbacks_find_nothing_that_the_ones_before_have_set(is_async: bool) -> None:
    found: list[Any] = []

    def undo(ctx: RollbackContext) -> None:
        found.append(look_and_leave())

    async def undo_async(ctx: RollbackContext) -> None:
        found.append(await look_and_leave_async())

    @workflow
    async def story(step: WorkflowStep) -> None:
        for _ in range(3):
            await step.do("body", look_and_leave_async, rollback=undo_async if is_async else undo)
        await step.fail("for the rollbacks")

    assert run_to_end(story.start()).rollback == "complete"
    assert found == [UNTOUCHED] * 3
