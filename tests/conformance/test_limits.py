"""`max_running`: only so many instances of a workflow are held by workers at a time, over all of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from django.db import connection

from engine import WorkflowStep, workflow
from engine.models import Instance
from engine.steer import notify
from engine.steer.notify import REAP
from engine.worker.claims import Claimer
from tests.integration.rows import leased
from tests.shifts import running_shift, until, wait_for, wait_until

pytestmark = pytest.mark.usefixtures("nothing_is_violated")

DEAD_WORKER = 4_242


class Bodies:
    """Bodies that run until the test ends them, and which of them have begun."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.ended = 0
        self._gates: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    async def run(self, id: str) -> None:
        with self._lock:
            self.began.append(id)
        await until(self._gate(id))
        with self._lock:
            self.ended += 1

    def end(self, *ids: str) -> None:
        for name in ids:
            self._gate(name).set()

    def _gate(self, id: str) -> threading.Event:
        with self._lock:
            return self._gates.setdefault(id, threading.Event())

    def wait_for(self, *ids: str) -> None:
        """Wait until these have begun, in this order, and no others."""
        wait_until(lambda: len(self.began) >= len(ids), what=f"bodies of {ids}, of which {self.began} began")
        assert self.began == [*ids]


@pytest.fixture
def bodies() -> Bodies:
    return Bodies()


def held(workflow: str) -> int:
    return Instance.objects.filter(workflow=workflow, owner__isnull=False).count()


def standing(*instances: Instance) -> list[str]:
    return [one.refresh().status for one in instances]


def sweep() -> None:
    """Make the shifts look now, as they do every five seconds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify('engine_wake', %s)", [REAP])


def limited(bodies: Bodies, limit: int = 1) -> Any:
    @workflow("limited", max_running=limit)
    async def story(step: WorkflowStep, id: str) -> str:
        await step.do("work", bodies.run, id)
        await step.do("rest", _nothing)  # so that a pause during the work has something left to stop
        return id

    return story


def test_those_that_find_no_place_are_queued_and_come_in_the_order_of_their_starts(bodies: Bodies) -> None:
    story = limited(bodies, 2)
    one, two, three, four = (story.start(name) for name in "abcd")
    with running_shift():
        wait_until(lambda: sorted(bodies.began) == ["a", "b"])
        assert standing(one, two, three, four) == ["running", "running", "queued", "queued"]
        bodies.end("b")
        wait_until(lambda: bodies.began[2:] == ["c"])
        assert standing(one, two, three, four) == ["running", "complete", "running", "queued"]
        bodies.end("a", "c", "d")
        for each in (one, three, four):
            wait_for(each)


def test_an_unlimited_workflow_is_not_held_back_by_a_full_one(bodies: Bodies) -> None:
    story = limited(bodies)

    @workflow
    async def other(step: WorkflowStep) -> None: ...

    first, second = story.start("a"), story.start("b")
    with running_shift(slots=4):
        bodies.wait_for("a")
        for each in [other.start() for _ in range(8)]:
            wait_for(each)
        assert standing(first, second) == ["running", "queued"]
        bodies.end("a", "b")
        wait_for(second)


def test_one_that_parks_gives_its_place_up_and_goes_before_new_ones_when_it_wakes(bodies: Bodies) -> None:
    @workflow("limited", max_running=1)
    async def story(step: WorkflowStep, id: str) -> None:
        if id == "sleeper":
            await step.wait_for_event("go", type="go")
            await step.sleep("a moment", 0.05)
        await step.do("work", bodies.run, id)

    sleeper = story.start("sleeper")
    with running_shift():
        wait_for(sleeper, "waiting")
        holder, new = story.start("holder"), story.start("new")
        bodies.wait_for("holder")
        sleeper.send_event("go")  # it is due, but has no slot
        sweep()
        wait_for(sleeper, "queued")
        assert standing(holder, new) == ["running", "queued"]
        assert sleeper.refresh().waiting_for == ""
        bodies.end("holder", "new", "sleeper")
        for each in (sleeper, new):
            wait_for(each)
    # It began to sleep first, but new ones have run meanwhile.
    assert bodies.began[0] == "holder"
    assert sorted(bodies.began[1:]) == ["new", "sleeper"]


def test_a_sleeper_whose_time_has_come_waits_for_a_place_as_queued_and_goes_first(bodies: Bodies) -> None:
    @workflow("limited", max_running=1)
    async def story(step: WorkflowStep, id: str) -> None:
        if id == "sleeper":
            await step.sleep("a while", 3600)
        await step.do("work", bodies.run, id)

    sleeper = story.start("sleeper")
    with running_shift():
        wait_for(sleeper, "waiting")
        holder, new = story.start("holder"), story.start("new")
        bodies.wait_for("holder")
        _make_due(sleeper)
        sweep()
        wait_for(sleeper, "queued")
        bodies.end("holder")
        bodies.wait_for("holder", "sleeper")
        assert standing(holder, new) == ["complete", "queued"]
        bodies.end("sleeper", "new")
        wait_for(new)


def _make_due(instance: Instance) -> None:
    with connection.cursor() as cursor:
        for table, key in (("engine_instance", "key"), ("engine_step", "instance_id")):
            cursor.execute(
                f"UPDATE {table} SET wake_at = clock_timestamp() WHERE {key} = %s AND wake_at IS NOT NULL",
                [instance.key],
            )


def test_who_pauses_or_terminates_frees_the_place_and_who_resumes_waits_for_one(bodies: Bodies) -> None:
    story = limited(bodies)
    one, two, three = (story.start(name) for name in "abc")
    with running_shift():
        bodies.wait_for("a")
        two.pause()
        one.terminate()
        bodies.wait_for("a", "c")
        two.resume()
        sweep()
        three.pause()  # takes hold when its body has ended
        bodies.end("c")
        bodies.wait_for("a", "c", "b")
        assert standing(one, two, three) == ["terminated", "running", "paused"]
        three.resume()
        bodies.end("b")
        for each in (two, three):
            wait_for(each)


def test_parent_and_child_of_one_workflow_share_a_single_place(bodies: Bodies) -> None:
    @workflow("descent", max_running=1)
    async def descent(step: WorkflowStep, depth: int) -> int:
        if depth == 0:
            return 1
        return 1 + await step.run_workflow("next", "descent", depth - 1)

    top = descent.start(3)
    with running_shift():
        assert wait_for(top).output == 4


def test_rollbacks_take_a_place(bodies: Bodies) -> None:
    async def undo(_: object) -> None:
        await bodies.run("undo")

    @workflow("limited", max_running=1)
    async def story(step: WorkflowStep, id: str) -> None:
        await step.do("reserve", _nothing, rollback=undo)
        if id == "fails":
            await step.wait_for_event("go", type="go")
            await step.fail("no")
        await step.do("work", bodies.run, id)

    failing = story.start("fails")
    with running_shift():
        wait_for(failing, "waiting")
        other = story.start("other")
        bodies.wait_for("other")
        failing.terminate(rollback=True)
        sweep()
        assert standing(failing, other) == ["queued", "running"]
        bodies.end("other")
        bodies.wait_for("other", "undo")
        third = story.start("third")
        sweep()
        assert standing(failing, third) == ["running", "queued"]
        bodies.end("undo", "third")
        wait_for(third)
    assert failing.refresh().rollback == "complete"


async def _nothing() -> None: ...


def test_what_a_dead_worker_held_counts_until_it_is_taken_back_and_then_goes_first(bodies: Bodies) -> None:
    """It must run alone, and one slot is kept for it: otherwise new ones would always be faster."""
    story = limited(bodies)
    left = story.start("left")
    with running_shift():
        bodies.wait_for("left")
        new = story.start("new")
        leased(left, worker_id=DEAD_WORKER)
        sweep()
        bodies.wait_for("left", "left")
        assert standing(left, new) == ["running", "queued"]
        assert left.quarantined
        bodies.end("left", "new")
        wait_for(new)


def test_whoever_waits_for_a_place_costs_nothing(bodies: Bodies, monkeypatch: pytest.MonkeyPatch) -> None:
    story = limited(bodies)
    asked = []
    claim = Claimer.claim

    async def counted(claimer: Claimer) -> int:
        asked.append(claimer)
        return await claim(claimer)

    monkeypatch.setattr(Claimer, "claim", counted)
    with running_shift(), running_shift(name="other"):
        first = story.start("a")
        bodies.wait_for("a")
        waiting = [story.start(f"{number}") for number in range(20)]
        calm = threading.Event()
        calm.wait(0.3)
        before = len(asked)
        calm.wait(1)
        assert (
            len(asked) - before < 10
        )  # a shift that finds due rows, and takes none, asks more than 100 times
        bodies.end("a", *(f"{number}" for number in range(20)))
        for each in (first, *waiting):
            wait_for(each)


@contextmanager
def shifts(count: int, *, slots: int) -> Iterator[None]:
    with ExitStack() as stack:
        for number in range(count):
            stack.enter_context(running_shift(slots=slots, name=f"shift {number}"))
        yield


def test_three_shifts_never_hold_more_than_the_limit() -> None:
    running, most = [0], [0]
    lock = threading.Lock()

    async def work() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        await asyncio.sleep(0.001)
        with lock:
            running[0] -= 1

    @workflow("limited", max_running=2)
    async def story(step: WorkflowStep) -> None:
        await step.do("work", work)
        await step.sleep("a moment", 0.001)
        await step.do("work again", work)

    instances = story.start_many([{}] * 30).created
    seen = 0
    with shifts(3, slots=4):
        while Instance.objects.open().exists():
            seen = max(seen, held(story.name))
            notify.wake()
    assert (most[0] <= 2, seen <= 2, len(instances)) == (True, True, 30)
