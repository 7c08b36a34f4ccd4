"""Many and large buffered events: a worker reads them in pages, and only what a step waits for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from django.db import connection, transaction

from engine import EventTimeoutError, WorkflowStep, workflow
from engine.models import Event, Instance
from engine.replay.records.history import Page
from engine.replay.waiting.matching import Question
from engine.worker.database import history_sql
from engine.worker.database.clock import DatabaseClock
from engine.worker.database.limits import Limits
from engine.worker.database.reader import PAGE_BYTES, PAGE_EVENTS, Reader
from engine.worker.database.shift_connection import ShiftConnection
from tests.hand.host import NOW_US, HandHost, answer, cycle_of, end_body, event, take
from tests.integration.rows import row_of
from tests.integration.test_claim_plan import buffers, explain, nodes
from tests.stories import run_to_end, running_shift, wait_for

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")

SECOND = 1_000_000
FILL = """
    INSERT INTO engine_event (instance_id, type, payload, received_at, state, consumed_by, consumed_generation)
    SELECT %(key)s, %(type)s, to_json(n::text || coalesce(filling.text, '')), clock_timestamp(), %(state)s,
        CASE WHEN %(state)s = 'consumed' THEN n END, CASE WHEN %(state)s = 'consumed' THEN 1 END
    FROM generate_series(1, %(count)s) AS n
    CROSS JOIN LATERAL (
        SELECT string_agg(md5(n::text || line), '') FROM generate_series(1, %(size)s / 32) AS line
    ) AS filling (text)
"""


def fill(instance: Instance, type: str, count: int, *, size: int = 0, state: str = "buffered") -> None:
    """Send many events at once; their payloads begin with their number and have this many bytes."""
    values = {"key": instance.key, "type": type, "count": count, "size": size, "state": state}
    with connection.cursor() as cursor:
        cursor.execute(FILL, values)
    Instance.objects.filter(key=instance.key).update(signals=count)


@asynccontextmanager
async def reading() -> AsyncIterator[Reader]:
    connection = await ShiftConnection.open("reprise test reader")
    try:
        yield Reader(connection, 1, DatabaseClock())
    finally:
        await connection.close()


def ask(instance: Instance, question: Question) -> Page:
    async def read() -> Page:
        async with reading() as reader:
            return await reader.events(instance.key, question)

    return asyncio.run(read())


# Reading


def test_a_page_holds_no_more_than_its_number_of_events() -> None:
    instance = row_of()
    fill(instance, "a", PAGE_EVENTS + 1)
    first = ask(instance, Question(0, None))
    assert ([event.payload for event in first.events[:2]], first.is_cut) == (['"1"', '"2"'], True)
    assert (len(first.events), first.as_of_us) == (PAGE_EVENTS, first.events[-1].received_us)
    rest = ask(instance, Question(first.events[-1].key, None))
    assert (len(rest.events), rest.is_cut) == (1, False)


def test_a_page_ends_after_its_number_of_bytes_and_has_one_event_at_least() -> None:
    instance = row_of()
    fill(instance, "a", 20, size=200_000)
    page = ask(instance, Question(0, None))
    assert (len(page.events), page.is_cut) == (PAGE_BYTES // 200_000 + 1, True)


def test_only_the_types_that_are_asked_for_are_read() -> None:
    instance = row_of()
    fill(instance, "a", 150)
    fill(instance, "b", 2)
    page = ask(instance, Question(0, frozenset({"b", "c"})))
    assert ([event.type for event in page.events], page.is_cut) == (["b", "b"], False)


def test_a_claim_reads_no_more_for_many_instances_than_for_one() -> None:
    """What is left out of the first page is read when a step waits for it."""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.listen("a")

    instances = story.start_many([{}] * 5).created
    for instance in instances:
        fill(instance, "a", 50, size=30_000)
    Instance.objects.update(wake_at="2020-01-01T00:00:00Z")

    async def read() -> list[Page]:
        async with reading() as reader:
            claims = await reader.claim(Limits([story.name], {}), 5, quarantined=False)
            return [history.events for _, history in claims]

    pages = asyncio.run(read())
    assert sum(len(event.payload) for page in pages for event in page.events) < PAGE_BYTES + 30_100
    assert [page.is_cut for page in pages] == [True] * 5
    for instance in instances:
        assert run_to_end(instance).status == "complete"


def test_reading_and_counting_go_by_what_is_buffered_however_much_was_consumed() -> None:
    instance = row_of()
    fill(instance, "a", 20_000, state="consumed")
    fill(instance, "a", 3)
    page = {"keys": [instance.key], "after": 0, "types": None, "limit": 100, "bytes": 1_000_000}
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE engine_event")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        plan = explain(history_sql.BUFFERED_EVENTS, page)
    assert "engine_event_buffered" in {node.get("Index Name") for node in nodes(plan)}
    assert buffers(plan) < 20


# Waiting


def test_a_wait_finds_its_event_behind_thousands_of_others() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        rare = await step.wait_for_event("rare", ["b", "never"])
        return [rare.payload, (await step.wait_for_event("often", "a")).payload]

    instance = story.start()
    fill(instance, "a", 3_000)
    fill(instance, "b", 1)
    assert run_to_end(instance).output == ["1", "1"]
    assert Event.objects.filter(instance=instance, state="buffered").count() == 2_999


def test_more_events_than_a_page_are_delivered_in_order_and_each_once() -> None:
    count = 3 * PAGE_EVENTS + 7

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        got = []
        for number in range(count):
            got.append((await step.wait_for_event("n")).payload)
            if number % 120 == 50:
                await step.sleep("park", 0.01)
        return got

    instance = story.start()
    fill(instance, "n", count)
    assert run_to_end(instance).output == [str(number + 1) for number in range(count)]


def test_waits_side_by_side_each_get_the_oldest_of_their_types_page_by_page() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        async def rounds(name: str, types: list[str], count: int) -> list[Any]:
            return [(await step.wait_for_event(name, types)).payload for _ in range(count)]

        return list(
            await asyncio.gather(rounds("a", ["a"], 230), rounds("b", ["b"], 3), rounds("c", ["c"], 1))
        )

    instance = story.start()
    fill(instance, "a", 200)
    fill(instance, "b", 3)
    with running_shift():
        wait_for(instance, "waiting")
        fill(instance, "a", 30)
        instance.send_event("c", "last")
        wait_for(instance)
    a, b, c = instance.output
    assert a == [str(number + 1) for number in (*range(200), *range(30))]
    assert (b, c) == (["1", "2", "3"], ["last"])


def test_a_wait_for_several_types_takes_the_oldest_although_a_younger_one_was_read_before() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        first = await step.wait_for_event("first", "b")
        return [first.payload, (await step.wait_for_event("any", ["a", "b"])).type]

    instance = story.start()
    fill(instance, "a", 150)
    fill(instance, "b", 2)
    assert run_to_end(instance).output == ["1", "a"]


def test_a_wait_times_out_although_hundreds_came_too_late_for_it() -> None:
    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        try:
            await step.wait_for_event("in time", "a", timeout="1h")
        except EventTimeoutError:
            return [(await step.wait_for_event("late", "a")).payload]
        return []

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
    past = "2020-01-01T00:00:00Z"
    instance.steps.update(started_at=past, wake_at=past)
    fill(instance, "a", 250)
    Instance.objects.update(wake_at=past)
    assert run_to_end(instance).output == ["1"]


def test_an_event_in_time_counts_behind_hundreds_of_another_type() -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            return str((await step.wait_for_event("in time", "a", timeout="1h")).payload)
        except EventTimeoutError:
            return "timed out"

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
    fill(instance, "other", 250)
    fill(instance, "a", 1)
    Event.objects.update(received_at="2020-01-01T00:00:00Z")
    instance.steps.update(started_at="2020-01-01T00:00:00Z", wake_at="2020-01-01T01:00:00Z")
    Instance.objects.update(wake_at="2020-01-01T00:00:00Z")
    assert run_to_end(instance).output == "1"


# Rare orders


def test_nothing_is_read_while_nobody_waits() -> None:
    @workflow
    async def story(step: WorkflowStep) -> Any:
        await step.do("body", str)
        return (await step.wait_for_event("go", timeout=None)).payload

    host = HandHost()
    cycle = cycle_of(story, host)
    answer(cycle, take(cycle))
    cycle.on_signals("running", 5)
    assert host.asked_events == 0
    end_body(cycle, host, "body")
    assert host.asked_events == 1
    cycle.on_events(Page([event(1, "go")], host.time_us), 5)
    cycle.advance()
    assert cycle.writes.consumed.keys() == {1}


def test_what_nobody_waits_for_is_not_kept() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await asyncio.gather(step.do("body", str), step.listen("go"))

    host = HandHost()
    cycle = cycle_of(story, host)
    answer(cycle, take(cycle))
    for number in range(1, 30):
        cycle.on_signals("running", number)
        found = [] if cycle.events.question.types else [event(number, "noise")]
        cycle.on_events(Page(found, host.time_us), number)
    assert cycle.events.question == Question(1, frozenset({"go"}))
    assert cycle.events.events == []


def test_a_deadline_that_passes_while_events_are_read_is_not_forgotten() -> None:
    """Its timer has fired by then, and the answer is from before."""

    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            await step.wait_for_event("go", timeout=10)
        except EventTimeoutError:
            return "timed out"
        return "got it"

    host = HandHost()
    cycle = cycle_of(story, host)
    parking = take(cycle)
    cycle.written("running", 1, leave=parking.leave, has_left=False)
    asked_at = host.time_us
    host.time_us += 11 * SECOND
    cycle.advance()
    cycle.on_events(Page([], asked_at), 1)
    cycle.advance()
    assert (host.asked_events, cycle.writes.leave) == (2, None)
    cycle.on_events(Page([], host.time_us), 1)
    cycle.advance()
    assert cycle.writes.leave is not None
    assert cycle.writes.leave.output == '"timed out"'


def test_a_new_wait_takes_nothing_that_an_older_one_has_still_to_be_given() -> None:
    """An event was read while another wait, for what was not read, kept all from being given."""

    @workflow
    async def race(step: WorkflowStep) -> list[Any]:
        old = asyncio.ensure_future(step.wait_for_event("old", "red"))
        await step.do("one", str)
        other = asyncio.ensure_future(step.wait_for_event("other", "blue"))
        await step.do("two", str)
        other.cancel()
        new = asyncio.ensure_future(step.wait_for_event("new", "red"))
        await step.do("three", str)
        return [wait.done() and wait.result().payload for wait in (old, new)]

    host = HandHost()
    cycle = cycle_of(race, host, is_cut=True)
    assert (host.asked_events, cycle.events.question.types) == (1, {"red"})
    answer(cycle, take(cycle))
    end_body(cycle, host, "one")
    answer(cycle, take(cycle))
    cycle.on_events(Page([event(1, "red")], NOW_US + 1), 0)
    assert (host.asked_events, cycle.events.question.types) == (2, {"red", "blue"})
    end_body(cycle, host, "two")
    answer(cycle, take(cycle))
    end_body(cycle, host, "three")
    assert cycle.exit.ending is not None
    assert cycle.exit.ending.output == '["1",false]'
