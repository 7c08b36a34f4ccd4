"""Programs of asyncio made at random: a replay gives each branch what it recorded, and comes to the same end.

Every step is told which branch calls it, and returns that; a branch that is handed the result of another one says so.
Names repeat, so which of them a branch gets hangs on the order in which branches go on, are cancelled, and clean up.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import StepError, WorkflowStep, workflow
from engine.declare.registry import Workflow
from engine.models import Instance
from engine.testing import workflow_test
from tests.golden.history import Golden
from tests.golden.replay import replay
from tests.integration.test_replay_order import scattered

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("own_registry"), pytest.mark.second_tier]

EXAMPLES = int(os.environ.get("REPRISE_TEST_EXAMPLES", "40"))
DAY_US = 24 * 3600 * 1_000_000
NAMES = st.sampled_from(["a", "b"])

Program = tuple[Any, ...]
_stories = itertools.count()


class Mixed(AssertionError):
    """A branch was handed what another one had recorded."""


def composites(parts: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
    some = st.lists(parts, min_size=2, max_size=5)
    return st.one_of(
        st.tuples(
            st.sampled_from(["sequence", "gather", "group", "failing_group", "completed", "shielded"]), some
        ),
        st.tuples(st.sampled_from(["wait_first", "wait_all", "wait_failed"]), some),
        st.tuples(st.just("wait_for_operations"), st.lists(st.integers(0, 3), min_size=2, max_size=6)),
        st.tuples(st.sampled_from(["cleaned_up", "caught"]), parts, NAMES),
    )


LEAVES = st.one_of(
    st.tuples(st.just("do"), NAMES),
    st.tuples(st.just("sleep"), st.integers(1, 3)),
    st.tuples(st.just("failing"), NAMES),
)
PROGRAMS = st.recursive(LEAVES, composites, max_leaves=14)


class Interpreter:
    """Runs a program in a handler, and notes what each branch sees, in the order in which they see it."""

    def __init__(self, step: WorkflowStep, notes: list[Any]) -> None:
        self.step = step
        self.notes = notes

    async def run(self, program: Program, where: str = "0") -> None:
        kind, *rest = program
        await getattr(self, kind)(where, *rest)
        self.notes.append((kind, where))

    async def work(self, name: str, where: str) -> None:
        got = await self.step.do(name, lambda: where)
        if got != where:
            raise Mixed(f"{where} was handed the result of {got}")

    def parts(self, where: str, programs: list[Program]) -> list[Any]:
        return [self.run(program, f"{where}.{at}") for at, program in enumerate(programs)]

    # Leaves

    async def do(self, where: str, name: str) -> None:
        await self.work(name, where)

    async def sleep(self, where: str, seconds: int) -> None:
        await self.step.sleep("nap", seconds)

    async def failing(self, where: str, name: str) -> None:
        await self.step.do(name, lambda: 1 / 0, max_attempts=1)

    # What is made of them

    async def sequence(self, where: str, programs: list[Program]) -> None:
        for at, program in enumerate(programs):
            await self.run(program, f"{where}.{at}")

    async def gather(self, where: str, programs: list[Program]) -> None:
        await asyncio.gather(*self.parts(where, programs))

    async def group(self, where: str, programs: list[Program]) -> None:
        async with asyncio.TaskGroup() as group:
            for part in self.parts(where, programs):
                group.create_task(part)

    async def failing_group(self, where: str, programs: list[Program]) -> None:
        try:
            await self.group(where, [*programs, ("failing", "a")])
        except* StepError as errors:
            self.notes.append([str(error) for error in errors.exceptions])

    async def completed(self, where: str, programs: list[Program]) -> None:
        for at, one in enumerate(asyncio.as_completed(self.parts(where, programs))):
            await one
            await self.work("a", f"{where}: completed {at}")

    async def shielded(self, where: str, programs: list[Program]) -> None:
        shields = [asyncio.shield(part) for part in self.parts(where, programs)]
        done, pending = await asyncio.wait(shields, return_when=asyncio.FIRST_COMPLETED)
        await self.look_at([*done, *pending], shields, where)

    async def wait_first(self, where: str, programs: list[Program]) -> None:
        await self.wait(where, programs, asyncio.FIRST_COMPLETED)

    async def wait_all(self, where: str, programs: list[Program]) -> None:
        await self.wait(where, programs, asyncio.ALL_COMPLETED)

    async def wait_failed(self, where: str, programs: list[Program]) -> None:
        await self.wait(where, programs, asyncio.FIRST_EXCEPTION)

    async def wait(self, where: str, programs: list[Program], until: Any) -> None:
        tasks = [asyncio.create_task(part) for part in self.parts(where, programs)]
        done, pending = await asyncio.wait(tasks, return_when=until)
        for task in pending:
            task.cancel()
        await self.look_at([*done, *pending], tasks, where)

    async def wait_for_operations(self, where: str, seconds: list[int]) -> None:
        calls: list[Any] = [self.step.sleep("nap", one) if one else self.step.do("a", str) for one in seconds]
        done, pending = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        for call in pending:
            call.cancel()
        await self.look_at([*done, *pending], calls, where)

    async def look_at(self, found: list[Any], among: list[Any], where: str) -> None:
        """Do a step for each, in the order in which asyncio gave them."""
        for one in found:
            await self.work("b", f"{where}: saw {among.index(one)}")
        failed = await asyncio.gather(*among, return_exceptions=True)
        for error in failed:
            if isinstance(error, BaseException) and not isinstance(error, asyncio.CancelledError):
                raise error

    async def cleaned_up(self, where: str, program: Program, name: str) -> None:
        try:
            await self.run(program, f"{where}.0")
        finally:
            await self.work(name, f"{where}: cleaned up")

    async def caught(self, where: str, program: Program, name: str) -> None:
        try:
            await self.run(program, f"{where}.0")
        except asyncio.CancelledError:
            await self.work(name, f"{where}: caught")
            raise
        except (StepError, ExceptionGroup):
            await self.work(name, f"{where}: failed")


def declared(program: Program, seen: list[list[Any]]) -> Workflow[None, Any]:
    """Declare a workflow that runs the program, and keeps what each of its cycles saw."""

    async def handler(step: WorkflowStep) -> Any:
        kept, notes = scattered(), list[Any]()
        seen.append(notes)
        try:
            await Interpreter(step, notes).run(program)
        except (StepError, ExceptionGroup) as error:
            if (mixed := [one for one in flat(error) if isinstance(one, Mixed)]) != []:
                raise mixed[0] from None
            notes.append(str(error))
        await step.sleep("the end", len(kept[:1]))
        return [repr(note) for note in notes]

    return workflow(name=f"story-{next(_stories)}")(handler)


def flat(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [inner for one in error.exceptions for inner in flat(one)]


@pytest.mark.parametrize("always_replay", [False, True], ids=["live", "forgetful"])
def test_a_replay_gives_each_branch_what_it_recorded(always_replay: bool) -> None:
    """Guarantees 1 and 2, for a worker that remembers and for one that forgets everything after each outcome"""

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(PROGRAMS)
    def check(program: Program) -> None:
        seen: list[list[Any]] = []
        story = declared(program, seen)
        with workflow_test(story, always_replay=always_replay) as test:
            instance = test.run_to_end()
        assert instance.status == "complete", instance.error
        again(instance, story)
        longest = max(seen, key=len)
        assert [notes for notes in seen if notes != longest[: len(notes)]] == []

    check()


def again(instance: Instance, story: Workflow[None, Any]) -> None:
    """Replay the instance from its rows: no body runs, nothing is new, and it ends as it did."""
    golden = Golden.of("story", instance)
    cycle = replay(story, golden.claimed(), golden.history(), now_us=golden.started_us + DAY_US)
    assert cycle.exit.ending is not None
    assert (cycle.exit.ending.status, cycle.exit.ending.error) == ("complete", None)
    assert cycle.exit.ending.output == story.output.encode(instance.output)
    assert cycle.writes.leave is None or cycle.writes.leave.unreached == ()
