"""The handler takes the same turn on every replay: gather, TaskGroup and races over steps."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine import StepError, WorkflowStep, workflow
from tests import shifts
from tests.records import statuses, step, steps
from tests.stories import run_to_end, running_shift, wait_for, wait_until

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")


def after(seconds: float, value: Any) -> Any:
    async def body() -> Any:
        await asyncio.sleep(seconds)
        return value

    return body


def test_a_race_has_the_same_winner_on_every_replay() -> None:
    """The loser, which is done too by then, must not win the second time."""
    winners: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        racers = [
            asyncio.create_task(step.do(name, after(seconds, name)))
            for name, seconds in (("slow", 0.06), ("quick", 0.01), ("middle", 0.03))
        ]
        done, _ = await asyncio.wait(racers, return_when=asyncio.FIRST_COMPLETED)
        winners.append(",".join(sorted(task.result() for task in done)))
        await asyncio.wait(racers)
        for _ in range(3):
            await step.sleep("park", 0.005)
        return winners[-1]

    instance = run_to_end(story.start())
    assert instance.output == "quick"
    assert len(winners) >= 4
    assert set(winners) == {"quick"}


@pytest.mark.parametrize("made", ["as it is", "ensure_future", "create_task"])
def test_operations_can_be_raced_in_any_form(made: str) -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        form = {"as it is": lambda call: call, "ensure_future": asyncio.ensure_future}.get(
            made, asyncio.create_task
        )
        work, limit = form(step.do("work", after(60, "done"))), form(step.sleep("limit", 0.02))
        done, _ = await asyncio.wait([work, limit], return_when=asyncio.FIRST_COMPLETED)
        work.cancel()
        await step.sleep("park", 0.01)
        return [name for name, call in (("work", work), ("limit", limit)) if call in done]

    instance = run_to_end(story.start())
    assert (instance.error, instance.output) == (None, ["limit"])
    assert statuses(instance) == {"work": "cancelled", "limit": "complete", "park": "complete"}


def test_a_step_whose_task_is_cancelled_before_it_began_never_starts() -> None:
    ran: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        task = asyncio.create_task(step.do("never", lambda: ran.append(1)))
        task.cancel()
        await step.sleep("park", 0.01)
        return "done"

    instance = run_to_end(story.start())
    assert (instance.output, ran, statuses(instance)) == ("done", [], {"park": "complete"})


def test_a_step_of_one_name_that_was_given_up_runs_anew() -> None:
    """Under `once` a second call returns the first's result; one that was cancelled has none."""
    ran: list[str] = []

    @workflow(step_identity="name")
    async def story(step: WorkflowStep) -> list[str]:
        first = asyncio.create_task(step.do("fetch", after(60, "first")))
        await step.sleep("limit", 0.02)
        first.cancel()
        got = [await step.do("fetch", lambda: ran.append("ran") or "second") for _ in range(2)]
        await step.sleep("park", 0.01)
        return got

    instance = run_to_end(story.start())
    assert (instance.error, instance.output, ran) == (None, ["second", "second"], ["ran"])
    assert [row for row in steps(instance) if row[0] == "do"] == [
        ("do", "fetch", 1, "cancelled"),
        ("do", "fetch", 2, "complete"),
    ]


def test_the_order_of_completion_is_the_recorded_one() -> None:
    """as_completed and callbacks see outcomes one at a time, by delivery number, not in a bunch."""
    seen: list[list[Any]] = []

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        order: list[int] = []

        async def one(number: int, seconds: float) -> None:
            await step.do(f"n{number}", after(seconds, number))
            order.append(number)
            await step.do(f"m{number}", after(0.02 - seconds / 4, number))
            order.append(number + 10)

        await asyncio.gather(*(one(number, 0.06 - number * 0.02) for number in range(4)))
        seen.append(order)
        await step.sleep("park", 0.005)
        await step.sleep("park", 0.005)
        return order

    instance = run_to_end(story.start())
    assert len(seen) >= 3
    assert all(order == instance.output for order in seen)
    assert instance.output[0] == 3


def test_cancelled_losers_stay_cancelled() -> None:
    ran: list[str] = []
    replays: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        quick = asyncio.create_task(step.do("quick", after(0.01, "quick")))
        slow = asyncio.create_task(step.do("slow", after(60, "slow")))
        nap = asyncio.create_task(step.sleep("nap", "1h"))
        wait = asyncio.create_task(step.wait_for_event("never"))
        done, pending = await asyncio.wait([quick, slow, nap, wait], return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        replays.append(next(iter(done)).result())
        await step.sleep("park", 0.01)
        return await step.do("after", lambda: ran.append("after") or "after")

    instance = run_to_end(story.start())
    assert (instance.output, set(replays), ran) == ("after", {"quick"}, ["after"])
    assert len(replays) >= 2
    assert statuses(instance) == {
        "quick": "complete",
        "slow": "cancelled",
        "nap": "cancelled",
        "never": "cancelled",
        "park": "complete",
        "after": "complete",
    }


def test_an_event_is_not_consumed_by_a_wait_that_was_cancelled() -> None:
    @workflow
    async def story(step: WorkflowStep) -> Any:
        lost = asyncio.create_task(step.wait_for_event("lost", "go"))
        await step.sleep("timeout", 0.01)
        lost.cancel()
        return (await step.wait_for_event("second", "go")).payload

    instance = story.start()
    with running_shift():
        wait_until(lambda: statuses(instance).get("second") == "waiting")
        instance.send_event("go", 1)
        wait_for(instance)
    assert (instance.output, statuses(instance)["lost"]) == (1, "cancelled")


def test_a_failing_branch_beside_a_parked_one_ends_the_instance() -> None:
    """The instance was parked, woken by the branch that fails, and what was open is cancelled."""

    @workflow
    async def story(step: WorkflowStep) -> None:
        async def failing() -> None:
            await step.sleep("a while", 0.02)
            await step.do("fails", lambda: 1 / 0, max_attempts=1)

        await asyncio.gather(failing(), step.wait_for_event("approval"), step.sleep("long", "1h"))

    instance = run_to_end(story.start())
    assert (instance.status, instance.error["type"], instance.error["step"]) == (
        "errored",
        "ZeroDivisionError",
        "fails",
    )
    assert statuses(instance) == {
        "a while": "complete",
        "approval": "cancelled",
        "long": "cancelled",
        "fails": "errored",
    }


def test_a_task_group_cancels_its_other_branches_on_every_replay_alike() -> None:
    caught: list[list[str]] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(step.do("ok", after(0.01, 1)))
                group.create_task(step.do("bad", lambda: {}["missing"], max_attempts=1))
                group.create_task(step.do("slow", after(60, 2)))
                group.create_task(step.sleep("nap", "1h"))
        except* StepError as errors:
            caught.append([str(error) for error in errors.exceptions])
        await step.sleep("park", 0.01)
        return "went on"

    instance = run_to_end(story.start())
    assert instance.output == "went on"
    assert len(caught) >= 2
    assert all(errors == caught[0] for errors in caught)
    kept = statuses(instance)
    assert kept.pop("ok") in ("complete", "cancelled")
    assert kept == {"bad": "errored", "slow": "cancelled", "nap": "cancelled", "park": "complete"}


def test_a_task_group_of_plain_coroutines_over_steps() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        async def branch(number: int) -> int:
            await step.sleep(f"nap {number}", 0.01)
            return await step.do(f"n{number}", lambda: number)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(branch(number)) for number in range(3)]
        return [task.result() for task in tasks]

    assert run_to_end(story.start()).output == [0, 1, 2]


def test_locks_queues_and_events_of_asyncio_work_between_branches() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=1)
        lock, started = asyncio.Lock(), asyncio.Event()
        got: list[int] = []

        async def produce() -> None:
            await started.wait()
            for number in range(3):
                await queue.put(await step.do(f"made {number}", lambda number=number: number))

        async def consume() -> None:
            started.set()
            for _ in range(3):
                async with lock:
                    got.append(await queue.get())
                    await step.sleep("digest", 0.005)

        await asyncio.gather(produce(), consume())
        return got

    assert shifts.run_to_end(story.start()).output == [0, 1, 2]


def test_a_semaphore_bounds_how_many_bodies_run_at_once() -> None:
    running: list[int] = []
    most: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> int:
        slots = asyncio.Semaphore(2)

        async def body(number: int) -> int:
            running.append(number)
            most.append(len(running))
            await asyncio.sleep(0.01)
            running.remove(number)
            return number

        async def one(number: int) -> int:
            async with slots:
                return await step.do(f"n{number}", body, number)

        return sum(await asyncio.gather(*(one(number) for number in range(6))))

    assert run_to_end(story.start()).output == 15
    assert max(most) == 2


def test_steps_of_one_gather_are_recorded_in_call_order_whatever_comes_first() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await asyncio.gather(
            step.sleep("s", 0.02),
            step.do("d", str),
            step.wait_for_event("e", timeout=0.01),
            return_exceptions=True,
        )

    instance = run_to_end(story.start())
    assert [(name, status) for _, name, _, status in steps(instance)] == [
        ("s", "complete"),
        ("d", "complete"),
        ("e", "errored"),
    ]
    assert {step(instance, name).delivery for name in "sde"} == {1, 2, 3}


def test_a_shielded_step_is_not_cancelled_with_its_waiter() -> None:
    @workflow
    async def story(step: WorkflowStep) -> int:
        inner = asyncio.ensure_future(step.do("kept", after(0.05, 7)))
        outer = asyncio.create_task(_wait(asyncio.shield(inner)))
        await step.do("quick", str)
        outer.cancel()
        return await inner

    instance = run_to_end(story.start())
    assert (instance.output, statuses(instance)) == (7, {"kept": "complete", "quick": "complete"})


async def _wait(future: Any) -> Any:
    return await future


def test_two_shifts_in_turn_see_the_same_history() -> None:
    """What one has delivered live, the other replays."""
    seen: dict[int, list[Any]] = {}
    cycles: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> int:
        cycles.append(len(cycles))
        mine = seen.setdefault(cycles[-1], [])
        for number in range(4):
            values = await asyncio.gather(
                step.do("a", after(0.01, number)), step.do("b", lambda number=number: -number)
            )
            mine.append((values, step.now(), step.uuid4(), step.random.random()))
            await step.wait_for_event("next")
        return len(mine)

    instance = story.start()
    for number in range(4):
        with shifts.running_shift(name=f"shift {number}"):
            shifts.wait_until(
                lambda number=number: ("event", "next", number + 1, "waiting") in steps(instance)
            )
            shifts.wait_for(instance, "waiting")
        instance.send_event("next")
    shifts.run_to_end(instance)
    assert instance.output == 4
    assert len(seen) >= 5
    longest = max(seen.values(), key=len)
    assert len(longest) == 4
    for mine in seen.values():
        assert mine == longest[: len(mine)]
