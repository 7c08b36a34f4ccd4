"""Maps: one call for many items, each of which is a step of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from engine import (
    LimitError,
    ParkingError,
    RollbackContext,
    StepConfigError,
    StepContext,
    StepError,
    WorkflowStep,
    define_step,
    workflow,
)
from engine.models import Attempt, Instance, Step
from engine.values.errors import NonRetryableError
from tests import shifts
from tests.records import crash, steps
from tests.stories import run_to_end, running_shift, wait_for
from tests.travel import skip_wait


class Crew:
    """A body for items: it records which items run, and holds them until they are released."""

    def __init__(self, *, holds: bool = False) -> None:
        self.holds = holds
        self.let_go: set[int] = set()
        self.fails: set[int] = set()
        self.begun: list[int] = []
        self.ended: list[int] = []
        self.most = 0

    async def __call__(self, item: Any, index: int) -> Any:
        self.begun.append(index)
        self.most = max(self.most, self.at_work)
        try:
            await asyncio.sleep(0.001)
            while self.holds and index not in self.let_go:
                await asyncio.sleep(0.002)
            if index in self.fails:
                raise NonRetryableError(f"no {index}")
            return item
        finally:
            self.ended.append(index)

    @property
    def at_work(self) -> int:
        return len(self.begun) - len(self.ended)


def double(item: int, index: int) -> int:
    return item * 2


def items_of(instance: Instance, name: str = "items") -> dict[int, str]:
    """Return the status of each item that has begun, by its index."""
    rows = Step.objects.filter(instance=instance, name=name, kind="do", parent__gt=0).order_by("seq")
    return {count - 1: status for count, status in rows.values_list("count", "status")}


def attempts_of(instance: Instance, index: int, name: str = "items") -> list[str]:
    row = Step.objects.get(instance=instance, name=name, kind="do", count=index + 1)
    rows = Attempt.objects.filter(instance=instance, step_seq=row.seq).order_by("number")
    return list(rows.values_list("status", flat=True))


# Order and number


def test_a_map_runs_ten_items_at_a_time_and_returns_their_results_in_order() -> None:
    """KC-26: ours is 10 at a time by default"""
    crew = Crew(holds=True)

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        return await step.map("items", range(100, 125), crew)

    instance = story.start()
    with shifts.running_shift():
        for number in range(25):
            shifts.wait_until(lambda number=number: len(crew.begun) == min(number + 10, 25))
            crew.let_go.add([index for index in crew.begun if index not in crew.let_go][-1])
        shifts.wait_for(instance)
    assert instance.output == list(range(100, 125))
    assert (crew.begun, crew.most) == (list(range(25)), 10)
    assert crew.ended != sorted(crew.ended)
    [row] = Step.objects.filter(instance=instance, kind="map")
    assert (row.name, row.status, row.delivery, row.output) == ("items", "complete", 1, 25)
    assert row.options == {"operation": "map", "items": 25, "concurrency": 10}
    rows = Step.objects.filter(instance=instance, parent=row.seq).order_by("seq")
    assert [(one.kind, one.name, one.count, one.delivery) for one in rows] == [
        ("do", "items", number, None) for number in range(1, 26)
    ]


@pytest.mark.parametrize("concurrency", [1, 3, 1000])
def test_no_more_items_than_asked_for_are_at_work_at_a_time(concurrency: int) -> None:
    crew = Crew()

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        return await step.map("items", [1] * 40, crew, concurrency=concurrency)

    instance = run_to_end(story.start())
    assert instance.output == [1] * 40
    assert crew.most <= concurrency
    assert (crew.most == 1) == (concurrency == 1)


@dataclass
class Page:
    number: int


def test_results_have_the_type_of_the_function_live_and_on_every_replay() -> None:
    seen: list[list[Any]] = []

    def page(item: int, index: int, ctx: StepContext) -> Page:
        assert (ctx.name, ctx.count) == ("pages", index + 1)
        return Page(item)

    @workflow
    async def story(step: WorkflowStep) -> int:
        pages = await step.map("pages", (number for number in (1, 2)), page)
        seen.append(pages)
        await step.sleep("park", 0.01)
        return sum(one.number for one in pages)

    assert run_to_end(story.start()).output == 3
    assert len(seen) >= 2
    assert all(pages == [Page(1), Page(2)] for pages in seen)


def test_a_map_of_nothing_is_done_at_once_and_recorded() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        return [await step.map("none", [], double), await step.batch("none", iter(()), double)]

    instance = run_to_end(story.start())
    assert instance.output == [[], None]
    assert steps(instance) == [("map", "none", 1, "complete"), ("map", "none", 2, "complete")]


def test_for_each_returns_nothing() -> None:
    """KC-31"""
    crew = Crew()

    @workflow
    async def story(step: WorkflowStep) -> Any:
        return await step.for_each("items", "abc", crew, concurrency=2)

    instance = run_to_end(story.start())
    assert (instance.output, crew.begun, crew.most) == (None, [0, 1, 2], 2)


def test_batches_run_one_after_the_other_with_the_index_of_their_first_item() -> None:
    """KC-32"""
    calls: list[tuple[int, list[int]]] = []

    def note(batch: list[int], start: int) -> None:
        calls.append((start, batch))

    @workflow
    async def story(step: WorkflowStep) -> Any:
        await step.batch("two", range(5), note, batch_size=2)
        return await step.batch("twenty", range(41), note)

    instance = run_to_end(story.start())
    assert instance.output is None
    assert calls[:3] == [(0, [0, 1]), (2, [2, 3]), (4, [4])]
    assert [(start, len(batch)) for start, batch in calls[3:]] == [(0, 20), (20, 20), (40, 1)]
    [row] = Step.objects.filter(instance=instance, kind="map", name="twenty")
    assert row.options == {"operation": "batch", "items": 3, "concurrency": 1, "batch_size": 20}


def test_several_maps_side_by_side_and_one_name_twice() -> None:
    crew, other = Crew(), Crew()

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        maps = [
            step.map("items", [1, 2, 3], crew, concurrency=2),
            step.map("items", [4, 5], other, concurrency=1),
            step.map("doubled", [6], double),
        ]
        single = step.do("items", lambda: "not an item")
        return [*await asyncio.gather(*maps), await single]

    instance = run_to_end(story.start())
    assert instance.output == [[1, 2, 3], [4, 5], [12], "not an item"]
    assert (sorted(crew.begun), crew.most, other.begun, other.most) == ([0, 1, 2], 2, [0, 1], 1)


def test_each_item_has_a_key_of_its_own() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        keys = await step.map("items", [1, 2], lambda item, index, ctx: ctx.idempotency_key)
        keys += await step.map("items", [1, 2], lambda item, index, ctx: ctx.idempotency_key)
        return [*keys, await step.do("items", lambda ctx: ctx.idempotency_key)]

    assert len(set(run_to_end(story.start()).output)) == 5


# Failures


def test_when_an_item_fails_for_good_those_at_work_settle_and_no_other_begins() -> None:
    """KC-28: ours settles what runs, and runs nothing twice"""
    crew = Crew(holds=True)
    crew.fails = {0}
    caught: list[tuple[Any, ...]] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            await step.map("items", range(10), crew, concurrency=3)
        except StepError as error:
            caught.append((error.step, error.type, error.message, error.attempts))
        await step.sleep("park", 0.01)
        return "went on"

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: len(crew.begun) == 3)
        crew.let_go.add(0)
        shifts.wait_until(lambda: items_of(instance)[0] == "errored")
        assert items_of(instance) == {0: "errored", 1: "running", 2: "running"}
        crew.let_go.add(1)
        shifts.wait_until(lambda: items_of(instance)[1] == "complete")
        assert Step.objects.get(instance=instance, kind="map").status == "running"
        crew.let_go.add(2)
        shifts.wait_for(instance)
    assert instance.output == "went on"
    assert items_of(instance) == {0: "errored", 1: "complete", 2: "complete"}
    assert crew.begun == [0, 1, 2]
    assert len(caught) >= 2
    assert set(caught) == {("items[0]", "NonRetryableError", "no 0", 1)}


def test_a_failure_that_nobody_caught_names_its_item() -> None:
    crew = Crew()
    crew.fails = {2}

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.for_each("items", range(5), crew, concurrency=1)

    instance = run_to_end(story.start())
    assert (instance.status, crew.begun) == ("errored", [0, 1, 2])
    assert {key: instance.error[key] for key in ("type", "message", "step", "attempts")} == {
        "type": "NonRetryableError",
        "message": "no 2",
        "step": "items[2]",
        "attempts": 1,
    }


def test_of_several_failures_the_first_in_time_counts() -> None:
    crew = Crew(holds=True)
    crew.fails = {0, 1}

    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            await step.map("items", range(3), crew)
        except StepError as error:
            return error.step
        return ""

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: len(crew.begun) == 3)
        for index in (1, 0, 2):
            crew.let_go.add(index)
            shifts.wait_until(lambda index=index: items_of(instance).get(index) != "running")
        shifts.wait_for(instance)
    assert instance.output == "items[1]"


def test_an_item_is_tried_again_by_its_options_while_the_others_go_on() -> None:
    tries: list[int] = []

    def body(item: int, index: int, ctx: StepContext) -> int:
        if index == 1:
            tries.append(ctx.attempt)
            if ctx.attempt < 3:
                raise ValueError("not yet")
        return item

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        return await step.map("items", [7, 8, 9], body, max_attempts=3, delay=0)

    instance = run_to_end(story.start())
    assert (instance.output, tries) == ([7, 8, 9], [1, 2, 3])
    assert attempts_of(instance, 1) == ["errored", "errored", "complete"]
    assert attempts_of(instance, 2) == ["complete"]


def test_the_timeout_is_that_of_an_item() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.map("items", [0, 30], lambda item, index: asyncio.sleep(item), timeout=0.3, max_attempts=1)

    instance = run_to_end(story.start())
    assert (instance.error["type"], instance.error["step"]) == ("StepTimeoutError", "items[1]")
    assert (attempts_of(instance, 0), attempts_of(instance, 1)) == (["complete"], ["timed_out"])


def test_items_that_back_off_keep_their_places_and_the_instance_parks() -> None:
    tries: dict[int, int] = {}

    def body(item: int, index: int) -> int:
        tries[index] = tries.get(index, 0) + 1
        if index in (0, 2) and tries[index] == 1:
            raise ValueError("not yet")
        return item

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        return await step.map("items", range(6), body, concurrency=2, delay="1h")

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        assert instance.waiting_for == "retry"
        assert items_of(instance) == {0: "waiting", 1: "complete", 2: "waiting"}
        assert instance.wake_at == Step.objects.get(instance=instance, count=1, kind="do").wake_at
        skip_wait(instance)
        wait_for(instance)
    assert (instance.output, tries) == ([0, 1, 2, 3, 4, 5], {0: 2, 1: 1, 2: 2, 3: 1, 4: 1, 5: 1})


def test_an_item_that_backs_off_comes_to_its_end_after_another_has_failed() -> None:
    def body(item: int, index: int, ctx: StepContext) -> None:
        if index == 1:
            raise NonRetryableError("no")
        if ctx.attempt == 1:
            raise ValueError("not yet")

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.map("items", range(4), body, concurrency=2, delay="1h")

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        assert items_of(instance) == {0: "waiting", 1: "errored"}
        skip_wait(instance)
        wait_for(instance)
    assert instance.error["step"] == "items[1]"
    assert items_of(instance) == {0: "complete", 1: "errored"}


# Crashes, pauses, ends


def test_after_a_crash_only_the_rest_runs() -> None:
    """KC-29"""
    crew = Crew(holds=True)
    crew.let_go = set(range(6))

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        return await step.map("items", range(10), crew, concurrency=2)

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: list(items_of(instance).values()).count("complete") == 6)
        shifts.wait_until(lambda: crew.begun == list(range(8)))
        crash()
        shifts.wait_until(lambda: len(crew.begun) == 9)  # it runs alone at first
        assert set(items_of(instance)) == set(range(8))
        crew.let_go = set(range(10))
        shifts.wait_for(instance)
    assert instance.output == list(range(10))
    assert sorted(crew.begun) == [0, 1, 2, 3, 4, 5, 6, 6, 7, 7, 8, 9]
    assert [attempts_of(instance, index) for index in (5, 6, 7, 8)] == [
        ["complete"],
        ["lost", "complete"],
        ["lost", "complete"],
        ["complete"],
    ]


def test_after_a_failure_and_a_crash_no_other_item_begins() -> None:
    crew = Crew(holds=True)
    crew.fails, crew.let_go = {0}, {0}

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.map("items", range(5), crew, concurrency=2)

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: items_of(instance) == {0: "errored", 1: "running"})
        crash()
        shifts.wait_until(lambda: len(crew.begun) == 3)
        crew.let_go.add(1)
        shifts.wait_for(instance)
    assert instance.error["step"] == "items[0]"
    assert (crew.begun, items_of(instance)) == ([0, 1, 1], {0: "errored", 1: "complete"})


def test_a_pause_in_the_middle_lets_those_at_work_finish_and_the_rest_waits_for_the_resume() -> None:
    crew = Crew(holds=True)

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        return await step.map("items", range(6), crew, concurrency=2)

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: len(crew.begun) == 2)
        instance.pause()
        assert instance.status == "waiting_for_pause"
        crew.let_go = {0, 1}
        shifts.wait_for(instance, "paused")
        assert items_of(instance) == {0: "complete", 1: "complete"}
        crew.let_go = set(range(6))
        instance.resume()
        shifts.wait_for(instance)
    assert (instance.output, crew.begun, crew.most) == (list(range(6)), list(range(6)), 2)


def test_an_item_that_a_pause_has_put_off_does_not_begin_after_a_failure() -> None:
    crew = Crew(holds=True)
    crew.fails = {1}

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.map("items", range(9), crew, concurrency=3)

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: len(crew.begun) == 3)
        instance.pause()
        for index in (0, 1):
            crew.let_go.add(index)
            shifts.wait_until(lambda index=index: items_of(instance)[index] != "running")
        instance.resume()
        shifts.wait_for(instance, "running")
        crew.let_go.add(2)
        shifts.wait_for(instance)
    assert (instance.error["step"], crew.begun) == ("items[1]", [0, 1, 2])
    statuses = items_of(instance)
    assert [statuses.pop(index) for index in range(3)] == ["complete", "errored", "complete"]
    assert statuses in ({}, {3: "cancelled"})


def test_pauses_that_are_withdrawn_neither_lose_nor_repeat_an_item() -> None:
    crew = Crew(holds=True)
    count = 30

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        return await step.map("items", range(count), crew, concurrency=2)

    instance = story.start()
    crew.let_go = set(range(1, count))
    with shifts.running_shift():
        for number in range(2, count, 4):
            shifts.wait_until(lambda number=number: len(crew.begun) >= number)
            instance.pause()
            instance.resume()
        shifts.wait_until(lambda: len(crew.begun) == count)
        crew.let_go.add(0)
        shifts.wait_for(instance)
    assert (instance.output, crew.begun, crew.most) == (list(range(count)), list(range(count)), 2)


def test_a_map_that_the_handler_cancels_takes_its_items_with_it() -> None:
    crew = Crew(holds=True)

    @workflow
    async def story(step: WorkflowStep) -> str:
        async def fail() -> None:
            await step.listen("stop")
            raise ValueError("stop")

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(step.map("items", range(5), crew, concurrency=2))
                group.create_task(fail())
        except* ValueError:
            pass
        await step.listen("go on")
        return "went on"

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: len(crew.begun) == 2)
        instance.send_event("stop")
        shifts.wait_for(instance, "waiting")
        shifts.wait_until(lambda: crew.at_work == 0)  # a body is told in the next iteration of the event loop
        assert items_of(instance) == {0: "cancelled", 1: "cancelled"}
        assert Step.objects.get(instance=instance, kind="map").status == "cancelled"
        instance.send_event("go on")
        shifts.wait_for(instance)
    assert (instance.output, crew.begun) == ("went on", [0, 1])


@pytest.mark.parametrize("end", ["handler", "terminate"])
def test_what_is_open_of_a_map_ends_with_its_instance(end: str) -> None:
    crew = Crew(holds=True)

    @workflow
    async def story(step: WorkflowStep) -> str:
        forgotten = step.map("items", range(5), crew, concurrency=2)
        await step.listen("stop")
        return str(forgotten.done())

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: len(crew.begun) == 2)
        if end == "handler":
            instance.send_event("stop")
        else:
            instance.terminate()
        shifts.wait_for(instance)
        shifts.wait_until(lambda: crew.at_work == 0)
    assert instance.status == ("complete" if end == "handler" else "terminated")
    assert items_of(instance) == {0: "cancelled", 1: "cancelled"}
    assert attempts_of(instance, 0) == ["cancelled"]


def test_an_instance_that_runs_alone_goes_through_its_items_all_the_same() -> None:
    crew = Crew()

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        return await step.map("items", range(20), crew, concurrency=4)

    instance = story.start()
    Instance.objects.filter(key=instance.key).update(quarantined=True)
    run_to_end(instance)
    assert instance.output == list(range(20))
    assert (sorted(crew.begun), crew.most <= 4) == (list(range(20)), True)
    assert Attempt.objects.filter(instance=instance).count() == 20


def test_an_instance_that_runs_alone_begins_nothing_after_a_failure() -> None:
    crew = Crew()
    crew.fails = {0}

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.map("items", range(20), crew, concurrency=4)

    instance = story.start()
    Instance.objects.filter(key=instance.key).update(quarantined=True)
    run_to_end(instance)
    assert (instance.status, crew.begun, items_of(instance)) == ("errored", [0], {0: "errored"})


def test_other_items_than_were_recorded_pause_the_instance_and_say_so() -> None:
    count = [3]

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.map("items", range(count[0]), lambda item, index: 1 / 0, delay="1h")

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        count[0] = 4
        skip_wait(instance)
        wait_for(instance, "paused")
    assert instance.pause_reason["type"] == "NonDeterminismError"
    assert "Recorded: 3 items. Now: 4 items." in instance.pause_reason["message"]
    assert items_of(instance) == {0: "waiting", 1: "waiting", 2: "waiting"}


@pytest.mark.parametrize(("operation", "items"), [("map", 4), ("for_each", 3)])
def test_other_items_than_a_complete_map_had_pause_the_instance_and_say_so(
    operation: str, items: int
) -> None:
    calls = ["map", range(3)]

    @workflow
    async def story(step: WorkflowStep) -> Any:
        call, given = calls
        results = await getattr(step, call)("items", given, lambda item, index: index)
        await step.sleep("nap", "1h")
        return results

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        calls[:] = [operation, range(items)]
        skip_wait(instance)
        wait_for(instance, "paused")
        assert instance.pause_reason["type"] == "NonDeterminismError"
        text = f"A map of 3 items is recorded, and the handler calls a {operation} of {items}."
        assert text in instance.pause_reason["message"]
        calls[:] = ["map", range(3)]
        instance.resume()
        skip_wait(instance)
        assert wait_for(instance).output == [0, 1, 2]


def test_a_recorded_result_that_the_type_refuses_pauses_the_instance_and_names_the_item() -> None:
    takes = [int]

    @workflow
    async def story(step: WorkflowStep) -> None:
        def body(item: Any, index: int) -> Any:
            return item

        body.__annotations__["return"] = takes[0]
        await step.map("items", [1, 2], body)
        await step.sleep("park", "1h")

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        takes[0] = list
        skip_wait(instance)
        wait_for(instance, "paused")
    assert 'The recorded output of step "items[0]" does not match' in instance.pause_reason["message"]


def test_a_step_whose_name_is_its_identity_returns_the_first_maps_results() -> None:
    crew = Crew()

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        first = await step.map("items", [1, 2], crew, once=True)
        return [first, await step.map("items", [1, 2, 3], crew, once=True)]

    instance = run_to_end(story.start())
    assert (instance.output, crew.begun) == ([[1, 2], [1, 2]], [0, 1])


def test_a_defined_step_brings_its_options() -> None:
    @define_step(max_attempts=1)
    def fragile(item: int, index: int) -> int:
        raise ValueError("once is enough")

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.map("items", [1], fragile, timeout="1m")

    instance = run_to_end(story.start())
    options = Step.objects.get(instance=instance, kind="do").options
    assert (options["max_attempts"], options["timeout"], instance.error["attempts"]) == (1, 60, 1)


@dataclass
class Parcel:
    sku: str


def test_a_defined_step_has_the_arguments_of_each_item_validated_before_any_begins() -> None:
    seen: list[tuple[str, str]] = []

    @define_step
    def pack(item: Parcel, index: int) -> str:
        seen.append(("packed", item.sku))
        return item.sku

    @pack.rollback
    def unpack(ctx: RollbackContext) -> None:
        seen.append(("unpacked", ctx.args[0].sku))

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.map("items", [{"sku": "a"}], pack, rollback_options={"max_attempts": 1})
        await step.map("more", [{"sku": "b"}, {"sku": 5}], pack)

    instance = run_to_end(story.start())
    assert (instance.error["type"], instance.rollback) == ("InvalidParamsError", "complete")
    assert 'arguments of step "more[1]"' in instance.error["message"]
    assert seen == [("packed", "a"), ("unpacked", "a")]


# Refused calls


async def later() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("call", "option", "rule"),
    [
        (lambda step: step.map("items", 5, double), "items", "such as a list"),
        (lambda step: step.map("items", later(), double), "items", "asynchronous generator"),
        (lambda step: step.map("items", [1], "double"), "fn", "fn(item, index)"),
        (lambda step: step.map("items", [1], lambda item: item), "fn", "fn(item, index)"),
        (lambda step: step.batch("items", [1], lambda a, b, c: a), "fn", "fn(batch, start_index)"),
        (lambda step: step.map("items", [1], double, concurrency=0), "concurrency", "1 to 1,000"),
        (lambda step: step.map("items", [1], double, concurrency=1001), "concurrency", "1 to 1,000"),
        (lambda step: step.for_each("items", [1], double, concurrency=True), "concurrency", "1 to 1,000"),
        (lambda step: step.batch("items", [1], double, batch_size=0), "batch_size", "1 to 10,000"),
        (lambda step: step.batch("items", [1], double, batch_size="2"), "batch_size", "1 to 10,000"),
        (lambda step: step.batch("items", [1], double, concurrency=2), "concurrency", "no such option"),
        (lambda step: step.map("items", [1], double, retries=2), "retries", "max_attempts"),
    ],
)
def test_wrong_arguments_are_an_error_and_nothing_is_recorded(
    call: Callable[[WorkflowStep], Any], option: str, rule: str
) -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        try:
            await call(step)
        except StepConfigError as error:
            return [error.option, error.rule]
        return []

    instance = run_to_end(story.start())
    assert instance.output[0] == option
    assert rule in instance.output[1]
    assert steps(instance) == []


def test_items_past_the_limit_of_steps_are_refused_before_any_begins() -> None:
    taken: list[int] = []

    def endless() -> Iterator[int]:
        while True:
            taken.append(1)
            yield 1

    @workflow(max_steps=20)
    async def story(step: WorkflowStep) -> list[Any]:
        await step.do("first", str)
        refused = []
        for items in ([1] * 20, endless()):
            try:
                await step.map("items", items, double)
            except LimitError as error:
                refused.append(str(error))
        return refused

    instance = run_to_end(story.start())
    assert len(instance.output) == 2
    assert "21" in instance.output[0]
    assert steps(instance) == [("do", "first", 1, "complete")]
    assert len(taken) < 100


def test_a_map_inside_a_body_is_refused() -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        async def body() -> Any:
            return await step.map("items", [1], double)

        try:
            await step.do("outer", body, max_attempts=1)
        except StepError as error:
            return error.type
        return ""

    assert run_to_end(story.start()).output == ParkingError.__name__
