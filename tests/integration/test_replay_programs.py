"""Programs made at random, run under crashes, pauses and events: every replay of one sees what the others saw.

A program is a tree of sequences, gathers, races and groups over steps, milestones, sleeps and waits. Whatever the
handler observes is written down in each cycle, with the number of the delivery after which it saw that. What was
delivered and recorded must come in the same way in every cycle. What was delivered and not yet recorded is lost in a
crash, and may come differently in the next cycle; how much that is depends on the machine. Nothing else may be lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import pytest

from engine import EventTimeoutError, InstanceFinishedError, StepContext, StepError, WorkflowStep, workflow
from engine.models import Attempt, Event, Instance, Step
from engine.replay.calls.call import Call
from engine.replay.cycle import Cycle
from tests.records import crash
from tests.shifts import running_shift, wait_until

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")

PROGRAMS = 40
DEPTH = 3
CRASHES = (10, 30, 60)  # turns of `disturb`

Program = tuple[Any, ...]


@dataclass
class Stay:
    """What the handler saw in one cycle."""

    recorded: int  # the last delivery that was recorded when it began
    delivered: int = 0  # the last one that the handler got
    notes: list[tuple[int, Any]] = field(default_factory=list)  # with the delivery after which it was noted

    def until(self, delivery: int) -> list[tuple[int, Any]]:
        return [note for note in self.notes if note[0] <= delivery]


def make(dice: random.Random, depth: int, names: Counter[str]) -> Program:
    """Make a program of that depth."""
    kinds = ["do", "do", "do", "flaky", "failing", "milestone", "sleep", "wait", "timeout", "note"]
    if depth > 0:
        kinds = ["sequence", "gather", "race", "cancelling", "group", *kinds[:4]]
    kind = dice.choice(kinds)
    if kind in ("sequence", "gather", "race", "cancelling", "group"):
        return (kind, [make(dice, depth - 1, names) for _ in range(dice.randint(2, 3))])
    names[kind] += 1
    # Names repeat, so that counts are part of it.
    return (kind, f"{kind}-{names[kind] % 3}", dice.uniform(0, 0.02))


class Interpreter:
    """Runs one program in a handler, and notes all that it sees."""

    def __init__(self, step: WorkflowStep, stay: Stay, done: Counter[Any]) -> None:
        self.step = step
        self.stay = stay
        self.done = done

    async def run(self, program: Program) -> Any:
        result = await getattr(self, program[0])(*program[1:])
        seen = (program[0], result, self.step.now(), self.step.random.random())
        self.stay.notes.append((self.stay.delivered, seen))
        return result

    async def sequence(self, parts: list[Program]) -> Any:
        return [await self.run(part) for part in parts]

    async def gather(self, parts: list[Program]) -> Any:
        return await asyncio.gather(*(self.run(part) for part in parts))

    async def race(self, parts: list[Program]) -> Any:
        tasks = [asyncio.create_task(self.run(part)) for part in parts]
        first, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        winners = [number for number, task in enumerate(tasks) if task in first]
        return [winners, await asyncio.gather(*tasks)]

    async def cancelling(self, parts: list[Program]) -> Any:
        tasks = [asyncio.create_task(self.run(part)) for part in parts]
        first, rest = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task in rest:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return [number for number, task in enumerate(tasks) if task in first]

    async def group(self, parts: list[Program]) -> Any:
        broken: list[str] = []
        try:
            async with asyncio.TaskGroup() as group:
                for part in parts:
                    group.create_task(self.run(part))
                group.create_task(self.failing_for_good())
        except* StepError as errors:
            broken += [str(error) for error in errors.exceptions]
        return broken

    async def failing_for_good(self) -> None:
        await self.step.do("breaks the group", self._body, 0.005, 99, max_attempts=1)

    async def do(self, name: str, seconds: float) -> Any:
        return await self.step.do(name, self._body, seconds, 0)

    async def flaky(self, name: str, seconds: float) -> Any:
        return await self.step.do(name, self._body, seconds, 2, delay=seconds, max_attempts=9)

    async def failing(self, name: str, seconds: float) -> Any:
        try:
            return await self.step.do(name, self._body, seconds, 99, delay=seconds, max_attempts=2)
        except StepError as error:
            return error.message

    async def milestone(self, name: str, seconds: float) -> Any:
        return await self.step.progress(name)

    async def sleep(self, name: str, seconds: float) -> Any:
        return await self.step.sleep(name, seconds)

    async def wait(self, name: str, seconds: float) -> Any:
        event = await self.step.wait_for_event(name, "any", timeout=None)
        return (event.payload, event.received_at)

    async def timeout(self, name: str, seconds: float) -> Any:
        try:
            return (await self.step.wait_for_event(name, "any", timeout=seconds)).payload
        except EventTimeoutError as error:
            return error.step

    async def note(self, name: str, seconds: float) -> Any:
        self.step.log.info(name)
        return str(self.step.uuid4())

    async def _body(self, seconds: float, failures: int, ctx: StepContext) -> str:
        await asyncio.sleep(seconds)
        self.done[ctx.name, ctx.count] += 1
        if self.done[ctx.name, ctx.count] <= failures:
            raise ValueError(f"{ctx.name} #{ctx.count}")
        return f"{ctx.name} #{ctx.count}"


def test_every_replay_sees_what_the_others_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(20261121)
    programs = [make(dice, DEPTH, Counter()) for _ in range(PROGRAMS)]
    stays: dict[int, list[Stay]] = defaultdict(list)
    current: dict[Cycle, Stay] = {}
    done: dict[int, Counter[Any]] = defaultdict(Counter)

    @workflow
    async def story(step: WorkflowStep, params: int) -> str:
        stay = current[step._cycle] = Stay(step._cycle.history.last_delivery)
        stays[params].append(stay)
        return repr(await Interpreter(step, stay, done[params]).run(programs[params]))

    deliver = Cycle._deliver_to_handler

    def watched(cycle: Cycle, call: Call) -> None:
        assert call.record.delivery == current[cycle].delivered + 1
        current[cycle].delivered += 1
        deliver(cycle, call)

    monkeypatch.setattr(Cycle, "_deliver_to_handler", watched)

    instances = [story.start(number) for number in range(PROGRAMS)]
    with running_shift():
        disturb(instances, dice)
    for number, instance in enumerate(instances):
        instance.refresh()
        assert instance.status == "complete", (number, instance.error)
        assert_repeated(number, stays[number])
        _, (_, result, *_) = stays[number][-1].notes[-1]
        assert instance.output == repr(result), number
    assert_consistent(instances)


def assert_repeated(number: int, stays: list[Stay]) -> None:
    """What was recorded of each stay is what the last one saw; only crashes have lost anything."""
    losses = 0
    for stay, following in itertools.pairwise(stays):
        losses += stay.delivered > following.recorded
        kept = min(stay.delivered, following.recorded)
        assert stay.until(kept) == stays[-1].until(kept), (number, kept)
    assert losses <= len(CRASHES), number


def disturb(instances: list[Instance], dice: random.Random) -> None:
    """Send events, pause, resume and crash until all have ended."""
    keys = [instance.key for instance in instances]
    turns = 0
    paused: list[Instance] = []

    def are_finished() -> bool:
        nonlocal turns
        turns += 1
        open_ones = list(Instance.objects.filter(key__in=keys, finished_at=None).order_by("key"))
        for instance in dice.sample(open_ones, min(4, len(open_ones))):
            with contextlib.suppress(InstanceFinishedError):
                instance.send_event("any", turns)
        while paused:
            paused.pop().resume()
        if open_ones and turns % 2 == 0:
            paused.extend(dice.sample(open_ones, min(2, len(open_ones))))
            for instance in paused:
                instance.pause()
            if turns % 4 == 0:
                paused.pop().resume()  # at once, when it may not be reached yet
        if turns in CRASHES:
            crash()
        return not open_ones

    wait_until(are_finished, what="the end of all programs")


def assert_consistent(instances: list[Instance]) -> None:
    """Every delivery number is used once and without a gap; every event by one wait; nothing is left open."""
    for instance in instances:
        steps = Step.objects.filter(instance=instance)
        deliveries = sorted(steps.filter(delivery__isnull=False).values_list("delivery", flat=True))
        assert deliveries == list(range(1, len(deliveries) + 1)), instance
        assert not steps.exclude(status__in=("complete", "errored", "cancelled")).exists(), instance
        attempts = Attempt.objects.filter(instance=instance)
        assert not attempts.filter(status="running").exists(), instance
        finished = Counter(attempts.filter(status="complete").values_list("step_seq", flat=True))
        assert set(finished.values()) <= {1}, instance
        consumers = Event.objects.filter(instance=instance, state="consumed").values_list(
            "consumed_by", flat=True
        )
        waits = steps.filter(kind="event", status="complete").values_list("seq", flat=True)
        assert sorted(consumers) == sorted(waits), instance
