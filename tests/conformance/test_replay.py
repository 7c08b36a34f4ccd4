"""A replay: finished work is not done again, and the handler gets the same values again."""

from __future__ import annotations

import asyncio
import itertools
import threading
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from engine import StepContext, StepError, WorkflowStep, workflow
from tests import shifts
from tests.records import attempts, crash, lines, outcomes, step, steps
from tests.stories import run_to_end


def test_finished_steps_are_not_run_again_by_another_worker() -> None:
    """CF-01"""
    ran: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        a = await step.do("a", lambda: ran.append("a") or 1)
        b = await step.do("b", lambda: ran.append("b") or {"x": 2})
        await step.wait_for_event("go")
        return [a, b, await step.do("c", lambda: ran.append("c") or 3)]

    instance = story.start()
    with shifts.running_shift(name="first"):
        shifts.wait_for(instance, "waiting")
    instance.send_event("go")
    with shifts.running_shift(name="second"):
        shifts.wait_for(instance)
    assert instance.output == [1, {"x": 2}, 3]
    assert ran == ["a", "b", "c"]
    assert [attempts(instance, name)[0].worker for name in "abc"] == ["first", "first", "second"]


def test_a_step_that_returned_nothing_is_done() -> None:
    """CF-02"""
    ran: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> bool:
        value = await step.do("nothing", lambda: ran.append(1))
        await step.sleep("park", 0.01)
        return value is None

    instance = run_to_end(story.start())
    assert (instance.output, ran) == (True, [1])


def test_parallel_steps_of_one_name_count_in_call_order() -> None:
    """CF-04"""
    replays: list[list[int]] = []

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        async def after(seconds: float, value: int) -> int:
            await asyncio.sleep(seconds)
            return value

        calls = [step.do("same", after, 0.06 - value * 0.02, value) for value in range(3)]
        got = await asyncio.gather(*calls)
        replays.append(got)
        await step.sleep("park", 0.01)
        return got

    instance = run_to_end(story.start())
    assert instance.output == [0, 1, 2]
    assert len(replays) >= 2
    assert all(replay == [0, 1, 2] for replay in replays)
    assert [step(instance, "same", count).output for count in (1, 2, 3)] == [0, 1, 2]
    deliveries = [step(instance, "same", count).delivery for count in (1, 2, 3)]
    assert deliveries == [3, 2, 1]


def test_kinds_and_numbered_names_never_share_a_key() -> None:
    """CF-05"""

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        first = await step.do("a", lambda: 1)
        event = await step.wait_for_event("a")
        numbered = await step.do("a-1", lambda: 2)
        again = await step.do("a", lambda: 3)
        await step.sleep("a", 0.01)
        await step.sleep("a", 0.01)
        return [first, event.payload, numbered, again, await step.do("a5", lambda: 4)]

    instance = story.start()
    instance.send_event("a", "event")
    run_to_end(instance)
    assert instance.output == [1, "event", 2, 3, 4]
    assert [row[:3] for row in steps(instance)] == [
        ("do", "a", 1),
        ("event", "a", 1),
        ("do", "a-1", 1),
        ("do", "a", 2),
        ("sleep", "a", 1),
        ("sleep", "a", 2),
        ("do", "a5", 1),
    ]


def test_the_options_of_the_first_start_stay_in_force() -> None:
    """CF-07"""
    seen: list[tuple[int, int]] = []
    limits = iter([2, 5, 5, 5, 5])

    @workflow
    async def story(step: WorkflowStep) -> str:
        def body(ctx: StepContext) -> None:
            seen.append((ctx.attempt, ctx.options.max_attempts))
            raise ValueError("no")

        try:
            # The back-off parks, so that the second attempt belongs to another replay.
            await step.do("charge", body, max_attempts=next(limits), delay=0.05)
        except StepError as error:
            return error.message
        return "done"

    instance = run_to_end(story.start())
    assert instance.output == "no"
    assert seen == [(1, 2), (2, 2)]


def test_a_failure_that_was_caught_is_raised_again_from_the_record() -> None:
    """CF-08, KC-05"""
    ran: list[int] = []
    caught: list[tuple[Any, ...]] = []

    class Declined(Exception):
        def __init__(self) -> None:
            self.code = 402
            super().__init__("card declined")

    @workflow
    async def story(step: WorkflowStep) -> str:
        def charge() -> None:
            ran.append(1)
            raise Declined

        try:
            await step.do("charge", charge, max_attempts=2, delay=0)
        except StepError as error:
            caught.append((error.step, error.type, error.message, error.attempts, error.details, str(error)))
        await step.sleep("park", 0.01)
        return "went on"

    instance = run_to_end(story.start())
    assert (instance.output, ran) == ("went on", [1, 1])
    assert len(caught) >= 2
    assert all(one == caught[0] for one in caught)
    name, kind, message, count, details, _ = caught[0]
    assert (name, message, count, details) == ("charge", "card declined", 2, {"code": 402})
    assert kind.endswith("Declined")


def test_a_name_that_differs_on_every_replay_is_a_new_step_each_time() -> None:
    """CF-10, CC-04: the step is never found again at run time; the lint has tests of its own."""
    ran: list[str] = []
    ticks = itertools.chain(range(4), itertools.repeat(4))

    @workflow
    async def story(step: WorkflowStep) -> None:
        name = f"at {next(ticks)}"
        await step.do(name, lambda: ran.append(name))
        await step.sleep("park", 0.01)

    run_to_end(story.start())
    assert len(ran) >= 2
    assert len(set(ran)) == len(ran)


@dataclass
class Rich:
    when: datetime
    day: date
    tags: set[str]
    price: Decimal
    raw: bytes
    id: UUID
    took: timedelta
    pair: tuple[int, str]


def test_annotated_values_keep_their_types_live_and_replayed() -> None:
    """CF-11: through the return annotation."""
    seen: list[Rich] = []
    made = Rich(
        when=datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
        day=date(2026, 1, 2),
        tags={"a", "b"},
        price=Decimal("10.10"),
        raw=b"\x00\xff",
        id=uuid4(),
        took=timedelta(milliseconds=1500),
        pair=(1, "x"),
    )

    def make() -> Rich:
        return made

    @workflow
    async def story(step: WorkflowStep) -> None:
        seen.append(await step.do("make", make))
        await step.sleep("park", 0.01)

    run_to_end(story.start())
    assert len(seen) >= 2
    assert all(one == made and one is not made for one in seen)


def test_plain_values_are_the_same_live_and_replayed() -> None:
    """CF-11: without an annotation a body returns JSON, and tuples become lists at once."""
    seen: list[Any] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        value = await step.do("make", lambda: {"zz": (1, 2), "b": 1e16, "c": -0.0, "n": None, "t": True})
        seen.append(value)
        await step.sleep("park", 0.01)

    run_to_end(story.start())
    assert len(seen) >= 2
    shown = {repr(value) for value in seen}
    assert shown == {"{'zz': [1, 2], 'b': 1e+16, 'c': -0.0, 'n': None, 't': True}"}


def test_changing_a_returned_value_does_not_change_the_record() -> None:
    """Guarantee 1; CF-13 for what a step returned."""
    seen: list[list[int]] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        value = await step.do("list", lambda: [1])
        seen.append(list(value))
        value.append(2)
        await step.sleep("park", 0.01)

    instance = run_to_end(story.start())
    assert len(seen) >= 2
    assert all(one == [1] for one in seen)
    assert step(instance, "list").output == [1]


def test_changed_params_are_seen_as_they_were_on_the_next_replay() -> None:
    """CF-13"""
    seen: list[dict[str, int]] = []

    @workflow
    async def story(step: WorkflowStep, params: dict[str, int]) -> None:
        seen.append(dict(params))
        params["a"] = 2
        await step.sleep("park", 0.01)

    instance = run_to_end(story.start({"a": 1}))
    assert len(seen) >= 2
    assert all(one == {"a": 1} for one in seen)
    assert instance.params == {"a": 1}


def test_code_between_steps_runs_again_and_bodies_do_not() -> None:
    """CF-14"""
    outside: list[int] = []
    inside: list[int] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        outside.append(1)
        step.log.info("outside")
        await step.do("body", lambda ctx: (inside.append(1), ctx.log.info("inside"))[0])
        await step.sleep("park", 0.01)

    instance = run_to_end(story.start())
    assert (len(outside) >= 2, inside) == (True, [1])
    assert sorted(lines(instance)) == ["inside", "outside"]


def test_two_calls_of_one_name_are_two_steps() -> None:
    """LC-04; KC-01 (there the second call returns the first's result: see step_identity)"""

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        return [await step.do("x", lambda ctx: ctx.count) for _ in range(2)]

    instance = run_to_end(story.start())
    assert instance.output == [1, 2]
    assert steps(instance) == [("do", "x", 1, "complete"), ("do", "x", 2, "complete")]


def test_with_identity_by_name_the_second_call_returns_the_firsts_result() -> None:
    """KC-01: by the workflow's step_identity, or once=True on a call"""
    ran: list[str] = []

    async def handler(step: WorkflowStep, **options: Any) -> list[Any]:
        first = await step.do("x", lambda: ran.append("x") or 1, **options)
        together = await asyncio.gather(
            *(step.do("y", lambda: ran.append("y") or 2, **options) for _ in "ab")
        )
        await step.sleep("park", 0.01)
        return [first, await step.do("x", lambda: ran.append("x") or 3, **options), *together]

    @workflow(step_identity="name")
    async def by_name(step: WorkflowStep) -> list[Any]:
        return await handler(step)

    @workflow
    async def by_call(step: WorkflowStep) -> list[Any]:
        return await handler(step, once=True)

    for declared in (by_name, by_call):
        ran.clear()
        assert shifts.run_to_end(declared.start()).output == [1, 1, 2, 2]
        assert ran == ["x", "y"]


def test_a_value_made_inside_a_step_is_kept_and_step_uuid4_is_the_same_outside() -> None:
    """HC-10, HC-11, guarantee 20"""
    before: list[tuple[Any, ...]] = []
    after: list[tuple[Any, ...]] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        before.append((step.uuid4(), step.uuid4(), step.random.random(), step.now()))
        made = await step.do("clock", lambda: datetime.now(UTC).isoformat())
        after.append((step.uuid4(), step.random.randrange(10**9), step.now(), made))
        await step.sleep("park", 0.01)
        return made

    instance = run_to_end(story.start())
    assert len(after) >= 2
    assert (len(set(before)), len(set(after))) == (1, 1)
    assert instance.output == after[0][3]
    assert before[0][0] != before[0][1] != after[0][0]
    assert before[0][3] == instance.started_at
    assert after[0][2] == step(instance, "clock").finished_at


def test_another_instance_draws_other_values() -> None:
    """Guarantee 20: seeded by instance"""

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        return [str(step.uuid4()), step.random.random()]

    first, second = (run_to_end(story.start()) for _ in range(2))
    assert first.output[0] != second.output[0]
    assert first.output[1] != second.output[1]


def test_a_list_of_what_parallel_steps_returned_is_whole_after_a_replay() -> None:
    """CC-02"""

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        got = list(await asyncio.gather(*(step.do(f"n{n}", lambda n=n: n) for n in range(5))))
        await step.sleep("park", 0.01)
        return got

    assert run_to_end(story.start()).output == [0, 1, 2, 3, 4]


def test_the_idempotency_key_is_the_same_on_every_attempt() -> None:
    """CC-05, guarantee 21: the charge succeeded, its answer was lost"""
    keys: list[str] = []

    def charge(ctx: StepContext) -> str:
        keys.append(ctx.idempotency_key)
        if ctx.attempt == 1:
            raise ConnectionError("answer lost")
        return "charged"

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        return [await step.do("charge", charge, delay=0.01) for _ in range(2)]

    instance = run_to_end(story.start())
    assert instance.output == ["charged", "charged"]
    assert len(keys) == 4
    assert keys[0] == keys[1] != keys[2] == keys[3]


def test_a_body_interrupted_by_its_workers_death_runs_again_and_earlier_steps_do_not() -> None:
    """CF-29, CC-06, guarantee 5"""
    ran: list[tuple[str, int]] = []
    in_body = asyncio.Event()

    @workflow
    async def story(step: WorkflowStep) -> int:
        async def body(ctx: StepContext) -> int:
            ran.append(("b", ctx.attempt))
            in_body.set()
            if ctx.attempt == 1:
                await asyncio.sleep(60)
            return ctx.attempt

        await step.do("a", lambda: ran.append(("a", 1)))
        return await step.do("b", body, max_attempts=1)

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(in_body.is_set)
        crash()
        shifts.wait_for(instance)
    assert instance.output == 2
    assert ran == [("a", 1), ("b", 1), ("b", 2)]
    assert outcomes(instance, "b") == ["lost", "complete"]
    lost = attempts(instance, "b")[0]
    assert lost.finished_at is not None
    assert step(instance, "b").lost == 1


def test_the_writes_of_a_worker_that_lost_its_instance_are_refused() -> None:
    """CC-07, guarantee 17"""
    values: list[str] = []
    is_finished = threading.Event()

    @workflow
    async def story(step: WorkflowStep) -> str:
        def body(ctx: StepContext) -> str:
            if ctx.attempt == 1:
                # Sync, so that it outlives its worker's lease, and returns late.
                is_finished.wait(60)
            values.append(f"attempt {ctx.attempt}")
            return f"attempt {ctx.attempt}"

        return await step.do("slow", body)

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: outcomes_or_none(instance) == ["running"])
        crash()
        shifts.wait_for(instance)
        is_finished.set()
        shifts.wait_until(lambda: len(values) == 2)
    assert instance.refresh().output == "attempt 2"
    assert values == ["attempt 2", "attempt 1"]
    assert outcomes(instance, "slow") == ["lost", "complete"]


def outcomes_or_none(instance: Any) -> list[str]:
    return outcomes(instance, "slow") if steps(instance) else []
