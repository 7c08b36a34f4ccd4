"""Answers of the database that overtake a cycle: driven by hand, in orders that chance seldom brings."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine import WorkflowStep, branch, workflow
from engine.replay.host import Phase
from engine.replay.records.history import Page
from engine.replay.records.other_instances import AwaitedState
from engine.replay.records.writes import Leave
from engine.values.serialization import Stored
from engine.worker.database import journal, lost_answers
from tests.hand.host import NOW_US, HandHost, answer, cycle_of, end_body, event, take

pytestmark = pytest.mark.usefixtures("own_registry")


def test_an_answer_that_comes_while_the_cycle_parks_does_not_wake_it() -> None:
    """It belongs to an earlier flush; taking it for the answer to the parking would run the handler on unleased."""

    @workflow
    async def race(step: WorkflowStep) -> None:
        await asyncio.gather(step.do("a", str), step.do("b", str))
        await step.sleep("nap", 1)
        await step.do("c", str)

    host = HandHost()
    cycle = cycle_of(race, host)
    answer(cycle, take(cycle))
    end_body(cycle, host, "a")
    on_its_way = take(cycle)
    end_body(cycle, host, "b")
    assert cycle.phase is Phase.LEAVING
    host.time_us += 2_000_000
    answer(cycle, on_its_way)
    answer(cycle, take(cycle))
    assert (host.has_left, host.bodies) == (True, {})


def test_a_refused_parking_leaves_nothing_behind_in_what_is_written_next() -> None:
    """A signal came: the cycle goes on, and its next flush must not park it after all."""

    @workflow
    async def race(step: WorkflowStep) -> None:
        await step.wait_for_event("a")
        await step.do("b", str)

    host = HandHost()
    cycle = cycle_of(race, host)
    parking = take(cycle)
    cycle.written("running", 1, leave=parking.leave, has_left=False)
    cycle.on_events(Page([event(1, "a")], host.time_us), 1)
    cycle.advance()
    assert cycle.writes.leave is None
    answer(cycle, take(cycle), signals=1)
    assert (cycle.phase, list(host.bodies)) == (Phase.DRIVING, ["b"])


def test_an_event_whose_consumption_is_on_its_way_is_not_taken_twice() -> None:
    """Reading goes over another connection and still finds it buffered."""

    @workflow
    async def race(step: WorkflowStep) -> list[Any]:
        body = asyncio.ensure_future(step.do("body", str))
        got = [(await step.wait_for_event("a", timeout=None)).payload for _ in range(2)]
        await body
        return got

    host = HandHost()
    cycle = cycle_of(race, host)
    answer(cycle, take(cycle))
    cycle.on_signals("running", 1)
    cycle.on_events(Page([event(1, "a")], host.time_us), 1)
    cycle.advance()
    consuming = take(cycle)
    assert consuming.consumed.keys() == {1}
    cycle.on_signals("running", 2)
    cycle.on_events(Page([event(1, "a"), event(2, "a")], host.time_us), 2)
    cycle.advance()
    assert cycle.writes.consumed.keys() == {2}
    answer(cycle, consuming, signals=2)
    end_body(cycle, host, "body")
    assert cycle.writes.leave is not None
    assert cycle.writes.leave.output == '["1","2"]'


def test_a_start_that_was_left_out_is_begun_again_also_when_the_pause_is_over_by_then() -> None:
    """The answer that tells of it comes after the news that the pause was withdrawn, which then is no news."""

    @workflow
    async def race(step: WorkflowStep) -> None:
        await step.do("a", str)

    host = HandHost()
    cycle = cycle_of(race, host)
    on_its_way = take(cycle)
    cycle.on_signals("running", 2)  # paused and resumed
    cycle.on_events(Page([], host.time_us), 2)
    journal.tell(cycle, on_its_way, "waiting_for_pause", 1, has_left=False)
    cycle.advance()
    assert host.bodies == {}
    answer(cycle, take(cycle), signals=2)
    assert (cycle.phase, list(host.bodies)) == (Phase.DRIVING, ["a"])


def test_a_step_is_not_written_over_that_is_being_committed_when_the_handler_cancels_it() -> None:
    """The database would refuse to change what is complete, and the instance would end by that."""

    @workflow
    async def race(step: WorkflowStep) -> None:
        selling = asyncio.ensure_future(step.do("sell", str, atomic=True))
        await step.do("win", str)
        selling.cancel()
        await step.do("after", str)

    host = HandHost(is_committing=True)
    cycle = cycle_of(race, host)
    answer(cycle, take(cycle))
    end_body(cycle, host, "win")
    assert sorted(record.name for record in cycle.writes.steps.values()) == ["after", "win"]
    operation, attempt = host.bodies.pop("sell")
    operation.take_in(attempt, Stored('""', ""), host.time_us)
    assert (operation.record.status, operation.record.delivery) == ("complete", None)
    assert sorted(record.name for record in cycle.writes.steps.values()) == ["after", "win"]


def test_a_start_that_is_found_recorded_is_not_written_again() -> None:
    """An atomic body, which begins at once, may have recorded its end by then."""

    @workflow
    async def race(step: WorkflowStep) -> None:
        await asyncio.gather(step.do("sell", str, atomic=True), step.sleep("nap", 60))

    host = HandHost()
    cycle = cycle_of(race, host)
    writes = take(cycle)
    assert sorted(record.name for record in writes.steps.values()) == ["nap", "sell"]
    lost_answers.settle(writes, has_starts=True, has_lines=False)
    assert list(host.bodies) == ["sell"]
    assert [record.name for record in writes.steps.values()] == ["nap"]
    assert writes.attempts == {}
    # Or its end would be taken for its start, and a pause would leave it out.
    assert host.bodies["sell"][0].record.is_recorded


def ended(seq: int = 1, output: str = "7") -> AwaitedState:
    return AwaitedState(seq, "complete", output, None, NOW_US, is_noted=True)


def test_a_child_that_ends_while_its_parent_parks_is_looked_at() -> None:
    """Its parent was signalled first, so the parking is refused."""

    @workflow
    async def child(step: WorkflowStep) -> int:
        return 7

    @workflow
    async def race(step: WorkflowStep) -> int:
        return await step.run_workflow("child", child)

    host = HandHost()
    cycle = cycle_of(race, host)
    parking = take(cycle)
    assert (parking.leave, list(parking.children)) == (Leave("waiting", "child", None, signals=0), [1])
    for record in parking.steps.values():
        record.is_recorded = True
    cycle.written("running", 1, leave=parking.leave, has_left=False)
    cycle.advance()
    assert host.asked_relations == 1
    cycle.on_relations([ended()])
    cycle.advance()
    assert cycle.writes.leave is not None
    assert cycle.writes.leave.output == "7"


def test_what_is_waited_for_is_looked_at_when_the_note_is_there_and_not_before() -> None:
    """It may have ended in between, and nobody tells: so the wait does not park until it has looked."""

    @workflow
    async def race(step: WorkflowStep) -> str:
        return (await step.wait_for_instance("other", workflow="other", id="one")).status

    host = HandHost()
    cycle = cycle_of(race, host)
    noting = take(cycle)
    assert (noting.waiters, noting.leave, host.asked_relations) == ({1: ("other", "one", None)}, None, 0)
    answer(cycle, noting)
    assert host.asked_relations == 1
    cycle.on_relations([AwaitedState(1, "running", None, None, None, is_noted=False)])
    cycle.advance()  # it began in the same flush as the note, say, which found nothing
    again = take(cycle)
    assert (again.waiters, again.leave) == ({1: ("other", "one", None)}, None)
    answer(cycle, again)
    cycle.on_relations([ended()])
    cycle.advance()
    assert cycle.writes.leave is not None
    assert cycle.writes.leave.output == '"complete"'


def test_a_pause_leaves_out_no_compensation() -> None:
    """It belongs to the failure, which is recorded: no replay would start it."""

    @workflow
    async def child(step: WorkflowStep) -> int:
        return 7

    @workflow
    async def undo(step: WorkflowStep, params: dict[str, Any]) -> None:
        """Undo."""

    @workflow
    async def race(step: WorkflowStep) -> None:
        await step.parallel("all", branch(child, compensate_with=undo), branch(child))

    host = HandHost()
    cycle = cycle_of(race, host)
    for record in take(cycle).steps.values():
        record.is_recorded = True
    failed = AwaitedState(3, "errored", None, '{"type": "E", "message": "m"}', NOW_US + 1, is_noted=True)
    cycle.phase = Phase.DRIVING
    cycle.on_relations([failed, ended(2)])
    failing = take(cycle)
    assert [one.workflow for one in failing.children.values()] == ["undo"]
    assert (failing.children.keys() <= failing.steps.keys(), failing.starts) == (True, set())


def test_news_that_comes_while_a_pause_is_reached_is_asked_for_again() -> None:
    @workflow
    async def child(step: WorkflowStep) -> int:
        return 7

    @workflow
    async def race(step: WorkflowStep) -> int:
        body = asyncio.ensure_future(step.do("body", str))
        value = await step.run_workflow("child", child)
        await body
        return value

    host = HandHost()
    cycle = cycle_of(race, host)
    answer(cycle, take(cycle))
    cycle.on_signals("running", 1)
    cycle.advance()
    cycle.on_signals("waiting_for_pause", 2)
    cycle.on_relations([ended(2)])
    cycle.advance()
    assert (cycle.phase, host.asked_relations) == (Phase.QUIESCING, 1)
    cycle.on_signals("running", 3)
    cycle.advance()
    assert host.asked_relations == 2
    cycle.on_relations([ended(2)])
    end_body(cycle, host, "body")
    assert cycle.writes.leave is not None
    assert cycle.writes.leave.output == "7"


@pytest.mark.parametrize("when", ["parking", "ending", "rolling back"])
def test_an_answer_that_comes_after_the_cycle_was_abandoned_says_nothing(when: str) -> None:
    """The next cycle of the instance may be under way on the same worker."""

    @workflow
    async def race(step: WorkflowStep) -> None:
        await step.do("a", str, rollback=str)
        if when == "parking":
            await step.sleep("nap", 1)
        elif when == "rolling back":
            await step.fail("no")

    host = HandHost()
    cycle = cycle_of(race, host)
    answer(cycle, take(cycle))
    end_body(cycle, host, "a")
    on_its_way = take(cycle)
    assert on_its_way.leave is not None
    cycle.exit.abandon()
    assert host.has_left
    host.has_left = False
    answer(cycle, on_its_way)
    assert (cycle.phase, host.has_left, bool(cycle.writes), host.bodies) == (Phase.LEFT, False, False, {})


def test_a_refusal_that_comes_after_the_cycle_was_abandoned_says_nothing() -> None:
    @workflow
    async def race(step: WorkflowStep) -> None:
        await step.do("a", str)

    host = HandHost()
    cycle = cycle_of(race, host)
    take(cycle)
    cycle.exit.abandon()
    cycle.recover(ValueError("refused"))
    assert (cycle.phase, bool(cycle.writes)) == (Phase.LEFT, False)
