"""What asyncio orders by the addresses of objects comes in one order on every replay, in every process."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from engine import StepError, WorkflowStep, workflow
from engine.models import Instance
from tests.shifts import running_shift, wait_for

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")

INSTANCES = 10
BRANCHES = 5


def scattered() -> list[bytes]:
    """Leave holes of all sizes in the memory, so that what is made next stands anywhere. To be kept meanwhile."""
    blocks = [bytes(random.randrange(16, 500)) for _ in range(4000)]
    random.shuffle(blocks)
    return blocks[:2000]


async def cancelled_group(step: WorkflowStep) -> Any:
    """A TaskGroup cancels its branches; each does a step on its way out, all of one name."""
    released = {}

    async def branch(number: int) -> None:
        try:
            await step.sleep(f"nap {number}", "1h")
        finally:
            released[number] = await step.do("release", lambda: number)

    try:
        async with asyncio.TaskGroup() as group:
            for number in range(BRANCHES):
                group.create_task(branch(number))
            group.create_task(step.do("fails", lambda: 1 / 0, max_attempts=1))
    except* StepError:
        pass
    return released


async def caught_in_group(step: WorkflowStep) -> Any:
    """The same by `except CancelledError`, and with a group inside a group."""
    undone = []

    async def branch(number: int) -> None:
        try:
            await step.wait_for_event("never")
        except asyncio.CancelledError:
            undone.append([number, await step.do("undo", lambda: number)])
            raise

    async def inner() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(BRANCHES):
                group.create_task(branch(number))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(inner())
            group.create_task(step.do("fails", lambda: 1 / 0, max_attempts=1))
    except* StepError:
        pass
    return undone


async def done_of_wait(step: WorkflowStep) -> Any:
    """Operations as they are, of which several are done when it looks."""
    operations: list[Any] = [step.do("work", lambda n=n: n) for n in range(BRANCHES)]
    done, _ = await asyncio.wait(operations)
    return [one.result() for one in done]


async def pending_of_wait(step: WorkflowStep) -> Any:
    tasks = [asyncio.create_task(_interrupted(step, number)) for number in range(BRANCHES)]
    _, pending = await asyncio.wait(
        [*tasks, step.do("quick", str)],  # type: ignore[list-item]
        return_when=asyncio.FIRST_COMPLETED,
    )
    for task in pending:
        task.cancel()
    return [await task for task in tasks]


async def gathered_of_wait(step: WorkflowStep) -> Any:
    pairs = [asyncio.gather(step.do("work", lambda n=n: n), step.do("work", str)) for n in range(BRANCHES)]
    done, _ = await asyncio.wait(pairs)
    return [one.result() for one in done]


async def shielded_of_wait(step: WorkflowStep) -> Any:
    shields = [asyncio.shield(step.do("work", lambda n=n: n)) for n in range(BRANCHES)]
    done, _ = await asyncio.wait(shields)
    return [one.result() for one in done]


async def coroutines_as_completed(step: WorkflowStep) -> Any:
    """It puts the coroutines into a set before it makes tasks of them, and each begins with a step of one name."""

    async def branch(number: int) -> Any:
        return [number, await step.do("work", lambda: number)]

    return [await one for one in asyncio.as_completed([branch(number) for number in range(BRANCHES)])]


async def done_as_completed(step: WorkflowStep) -> Any:
    operations: list[Any] = [step.do("work", lambda n=n: n) for n in range(BRANCHES)]
    await asyncio.gather(*operations)
    return [await one for one in asyncio.as_completed(operations)]


async def all_tasks(step: WorkflowStep) -> Any:
    tasks = [asyncio.create_task(_interrupted(step, number)) for number in range(BRANCHES * 3)]
    for task in tasks[1::2]:
        task.cancel()
    await step.do("quick", str)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    return [await task for task in tasks[::2]]


async def _interrupted(step: WorkflowStep, number: int) -> Any:
    try:
        await step.sleep(f"nap {number}", "1h")
    except asyncio.CancelledError:
        return await step.do("clean up", lambda: number)


async def sets_of_all_kinds(step: WorkflowStep) -> Any:
    loop = asyncio.get_running_loop()
    kinds: list[Callable[[int], Any]] = [
        lambda n: step.do("work", lambda: n),
        lambda n: loop.create_future(),
        lambda n: asyncio.ensure_future(step.do("work", lambda: n)),
        lambda n: step.wait_for_event(f"event {n}"),
        lambda n: step.map(f"map {n}", [n], lambda item, index: item),
    ]
    made = [kind(number) for number in range(BRANCHES) for kind in kinds]
    order = [made.index(one) for one in set(made)]
    for one in made:
        one.cancel()
    return order


async def many_locks(step: WorkflowStep) -> Any:
    lock, waiting = asyncio.Lock(), asyncio.Condition()
    order: list[Any] = []

    async def branch(number: int) -> None:
        async with waiting:
            await waiting.wait()
        async with lock:
            order.append([number, await step.do("locked", lambda: number)])

    tasks = {asyncio.create_task(branch(number), name=str(number)) for number in range(BRANCHES)}
    await step.do("first", str)
    async with waiting:
        waiting.notify_all()
    for task in tasks:
        await task
        order.append([task.get_name(), await step.do("ended", str)])
    return order


async def generators(step: WorkflowStep) -> Any:
    """What a generator does when it is left comes at its own time, and moves no number of the handler's."""

    async def values(number: int) -> AsyncIterator[int]:
        for value in range(3):
            yield await step.do(f"value {number}", lambda value=value: value)

    async for _ in values(1):
        break
    operations: list[Any] = [step.do("work", lambda n=n: n) for n in range(BRANCHES)]
    done, _ = await asyncio.wait(operations)
    return [one.result() for one in done]


PROGRAMS: list[Callable[[WorkflowStep], Awaitable[Any]]] = [
    cancelled_group,
    caught_in_group,
    done_of_wait,
    pending_of_wait,
    gathered_of_wait,
    shielded_of_wait,
    coroutines_as_completed,
    done_as_completed,
    all_tasks,
    sets_of_all_kinds,
    many_locks,
    generators,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_replay_takes_the_same_order(program: Callable[[WorkflowStep], Awaitable[Any]]) -> None:
    """Guarantee 2"""
    seen: dict[str, list[Any]] = {}

    @workflow
    async def story(step: WorkflowStep) -> Any:
        kept = scattered()
        seen.setdefault(step.instance_id, []).append(await program(step))
        for turn in range(3):
            await step.sleep(f"park {turn}", 0.005)
        return len(kept)

    instances = [story.start() for _ in range(INSTANCES)]
    with running_shift():
        for instance in instances:
            wait_for(instance)
    assert {instance.status for instance in instances} == {"complete"}
    assert all(len(results) >= 3 for results in seen.values())
    assert [results for results in seen.values() if any(one != results[0] for one in results)] == []


def test_another_shift_takes_the_same_order() -> None:
    """What one has recorded the other replays."""
    seen: list[Any] = []

    @workflow
    async def story(step: WorkflowStep) -> Any:
        kept = scattered()
        handles = [await step.spawn("spawn", "other", number) for number in range(BRANCHES)]
        order = [one.id for one in set(handles)]
        seen.append([order, await cancelled_group(step), await coroutines_as_completed(step)])
        await step.wait_for_event("go")
        return len(kept)

    @workflow(name="other")
    async def other(step: WorkflowStep, params: int) -> None: ...

    instances = [story.start() for _ in range(3)]
    with running_shift(name="first"):
        for instance in instances:
            wait_for(instance, "waiting")
    assert len({repr(one) for one in seen}) == len(instances)
    with running_shift(name="second"):
        for instance in instances:
            instance.send_event("go")
        for instance in instances:
            wait_for(instance)
    assert len({repr(one) for one in seen}) == len(instances)
    assert Instance.objects.filter(workflow="story", status="complete").count() == len(instances)
