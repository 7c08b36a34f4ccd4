"""A reader of an instance gets each committed change exactly once, whatever the order of the commits."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from engine.models import Attempt, Instance, Log, Step
from engine.status import documents
from engine.status.changes import Change, Cursor, InvalidCursorError, Kind, Page, read
from engine.status.changes.cursor import MOST_SEEN, Place
from engine.status.changes.marks import Mark
from tests.integration.rows import NOW, attempt_of, event_of, row_of, step_of

pytestmark = pytest.mark.django_db(transaction=True)


class Reader:
    """Reads on and on from where it is; each cursor goes through its text, as over HTTP."""

    def __init__(self, instance: Instance, *, limit: int = 200) -> None:
        self.cursor = Cursor(instance.key)
        self.limit = limit

    def page(self) -> Page:
        page = read(self.cursor, limit=self.limit)
        self.cursor = Cursor.of(page.after.text(), self.cursor.key)
        return page

    def news(self) -> list[Change]:
        """Return everything up to now."""
        found: list[Change] = []
        while True:
            page = self.page()
            found += page.changes
            if page.is_last:
                return found


def log_of(instance: Instance, message: str, **values: Any) -> Log:
    given = {"generation": 1, "level": "info", "at": NOW, **values}
    return Log.objects.create(instance=instance, message=message, **given)


def kinds(changes: list[Change]) -> list[str]:
    return [str(change.kind) for change in changes]


def told(changes: list[Change]) -> list[tuple[Kind, documents.Document]]:
    """Return what they say, without the sentence that has the time in it."""
    return [
        (one.kind, {name: value for name, value in one.document.items() if name != "why"}) for one in changes
    ]


def messages(changes: list[Change]) -> list[str]:
    return [change.document["message"] for change in changes if change.kind is Kind.LOG]


@contextmanager
def another() -> Iterator[Callable[[Callable[[], object]], object]]:
    """Give another connection, in which the test runs one function after the other."""
    with ThreadPoolExecutor(1) as pool:
        try:
            yield lambda work: pool.submit(work).result(60)
        finally:
            pool.submit(connections.close_all).result(60)


def begin() -> None:
    connection.set_autocommit(False)


def commit() -> None:
    connection.commit()
    connection.set_autocommit(True)


def roll_back() -> None:
    connection.rollback()
    connection.set_autocommit(True)


def test_the_history_comes_in_the_order_of_its_times_and_the_instance_last() -> None:
    instance = row_of()
    log_of(instance, "third", at=NOW + timedelta(seconds=2))
    step_of(instance, 2, started_at=NOW + timedelta(seconds=1))
    attempt_of(instance, 2, started_at=NOW + timedelta(seconds=1))
    step_of(instance, 1)
    event_of(instance, received_at=NOW + timedelta(seconds=3))
    changes = Reader(instance).news()
    assert kinds(changes) == ["step", "step", "attempt", "log", "event", "instance"]
    assert [change.document["seq"] for change in changes[:2]] == [1, 2]


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_a_history_in_pages_is_the_history(limit: int) -> None:
    instance = row_of()
    for seq in range(1, 8):
        step_of(instance, seq)
        attempt_of(instance, seq)
    pages, whole = Reader(instance, limit=limit).news(), Reader(instance).news()
    assert told(pages) == told(whole)


def test_from_every_position_the_rest_follows() -> None:
    instance = row_of()
    reader = Reader(instance, limit=3)
    for seq in range(1, 5):
        step_of(instance, seq)
    changes = reader.news()
    for seq in range(5, 9):
        attempt_of(instance, seq - 4)
        log_of(instance, f"line {seq}")
    Step.objects.filter(seq=1).update(sensitive=True)
    changes += reader.news()
    for position, change in enumerate(changes):
        again = Reader(instance, limit=2)
        again.cursor = Cursor.of(change.cursor.text(), instance.key)
        rest = told(again.news() + again.news())
        # A step that has changed since comes as it is now, with what came later.
        expected = told(changes[position + 1 :])
        is_before_the_change = position < kinds(changes).index("instance")
        if is_before_the_change:
            expected = [one for one in expected if one != (Kind.STEP, changes[0].document)]
            assert Counter(map(str, rest)) == Counter(map(str, expected))
        else:
            assert rest == expected


def test_a_change_comes_once() -> None:
    instance = row_of()
    reader = Reader(instance)
    step_of(instance)
    reader.news()
    assert reader.news() == []
    Step.objects.update(status="complete", finished_at=timezone.now())
    assert kinds(reader.news()) == ["step"]
    assert reader.news() == []


def test_a_transaction_that_commits_late_is_found() -> None:
    instance = row_of()
    reader = Reader(instance)
    with another() as late:
        late(begin)
        late(lambda: log_of(instance, "late", at=NOW - timedelta(days=1)))
        log_of(instance, "early")
        assert messages(reader.news()) == ["early"]
        assert reader.news() == []
        late(commit)
        assert messages(reader.news()) == ["late"]
        assert reader.news() == []


def test_what_a_savepoint_wrote_is_found_when_the_transaction_around_it_commits() -> None:
    """`pg_visible_in_snapshot` takes it for visible before."""
    instance = row_of()
    reader = Reader(instance)

    def write_inside() -> None:
        Step.objects.count()
        log_of(instance, "outside")
        with transaction.atomic():
            log_of(instance, "inside")
            with transaction.atomic():
                log_of(instance, "innermost")

    with another() as late:
        late(begin)
        late(write_inside)
        log_of(instance, "other")  # a later transaction: the snapshot ends after the savepoints
        assert messages(reader.news()) == ["other"]
        late(commit)
        assert messages(reader.news()) == ["outside", "inside", "innermost"]
        assert reader.news() == []


def test_what_is_rolled_back_never_comes() -> None:
    instance = row_of()
    reader = Reader(instance)
    with another() as late:
        late(begin)
        late(lambda: log_of(instance, "never"))
        reader.news()
        late(roll_back)
        log_of(instance, "later")
        assert messages(reader.news()) == ["later"]


def test_a_row_that_is_only_locked_is_no_news() -> None:
    instance = row_of()
    step_of(instance)
    reader = Reader(instance)
    reader.news()
    with transaction.atomic():
        Instance.objects.select_for_update().get(key=instance.key)
        Step.objects.select_for_update().get(instance=instance, seq=1)
    assert reader.news() == []


def test_a_lease_that_is_prolonged_is_no_news() -> None:
    instance = row_of(status="running", owner=7, wake_at=timezone.now())
    reader = Reader(instance)
    assert kinds(reader.news()) == ["instance"]
    Instance.objects.update(wake_at=timezone.now() + timedelta(seconds=30), signals=4)
    assert reader.news() == []
    Instance.objects.update(status="queued", owner=None)
    (change,) = reader.news()
    assert change.document["status"] == "queued"


def test_changes_during_a_long_history_come_after_it_and_once() -> None:
    instance = row_of()
    for seq in range(1, 11):
        step_of(instance, seq)
    reader = Reader(instance, limit=4)
    first = reader.page()
    Step.objects.filter(seq__in=[1, 10]).update(lost=1)
    step_of(instance, 11, started_at=NOW - timedelta(days=1))
    rest = reader.news()
    later = reader.news()
    assert [one.document["seq"] for one in (*first.changes, *rest) if one.kind is Kind.STEP] == [
        *range(1, 10)
    ]
    assert [one.document["seq"] for one in later] == [11, 1, 10]


def test_the_end_comes_after_everything() -> None:
    instance = row_of()
    reader = Reader(instance)
    assert reader.page().end is None
    step_of(instance, status="complete", finished_at=NOW)
    Instance.objects.update(status="complete", wake_at=None, finished_at=NOW)
    page = reader.page()
    assert kinds([*page.changes]) == ["step", "instance"]
    assert page.end is not None
    assert (page.end.status, page.end.generation) == ("complete", 1)
    again = reader.page()
    assert (again.changes, again.end) == ([], page.end)


def test_an_end_during_a_long_history_waits_for_what_came_with_it() -> None:
    instance = row_of()
    for seq in range(1, 5):
        step_of(instance, seq)
    reader = Reader(instance, limit=2)
    reader.page()
    with transaction.atomic():
        log_of(instance, "last words")
        Instance.objects.update(status="complete", wake_at=None, finished_at=NOW)
    rest = reader.page()
    assert (kinds([*rest.changes]), rest.is_last, rest.end) == (["step", "step"], True, None)
    last = reader.page()
    assert kinds([*last.changes]) == ["log", "instance"]
    assert last.end is not None


def test_a_restart_that_nobody_saw_coming_is_told() -> None:
    instance = row_of()
    step_of(instance, status="complete", finished_at=NOW)
    reader = Reader(instance)
    reader.news()
    instance.terminate(by="ada")
    instance.restart(from_step="s1", by="ada")
    page = reader.page()
    assert kinds([*page.changes]) == ["action", "generation", "action", "instance"]
    assert page.end is None
    closed = page.changes[1].document
    assert (closed["number"], closed["status"]) == (1, "terminated")
    assert page.changes[-1].document["generation"] == 2
    assert reader.news() == []


def test_a_restart_copies_the_steps_that_it_keeps() -> None:
    instance = row_of()
    step_of(instance, 1, status="complete", finished_at=NOW)
    step_of(instance, 2, started_at=NOW + timedelta(seconds=1))
    reader = Reader(instance)
    reader.news()
    instance.restart(from_step="s2", by="ada")
    steps = [one.document for one in reader.news() if one.kind is Kind.STEP]
    found = sorted((one["generation"], one["seq"], one["status"]) for one in steps)
    assert found == [(1, 2, "cancelled"), (2, 1, "complete")]
    whole = Reader(instance).news()
    places = [one.kind for one in whole]
    assert places.count(Kind.GENERATION) == 1
    assert whole[-1].kind is Kind.INSTANCE


def test_a_deleted_instance_ends_without_a_status() -> None:
    instance = row_of(status="complete", wake_at=None, finished_at=NOW)
    reader = Reader(instance)
    step_of(instance, status="complete", finished_at=NOW)
    reader.limit = 1
    reader.page()
    instance.delete(by="ada")
    page = reader.page()
    assert page.end is not None
    assert (page.changes, page.end.status) == ((), None)


def test_the_end_comes_without_its_kind() -> None:
    instance = row_of()
    step_of(instance)
    log_of(instance, "line")
    page = read(Cursor(instance.key), (Kind.STEP, Kind.LOG))
    assert kinds([*page.changes]) == ["step", "log"]
    Step.objects.update(status="complete", finished_at=NOW)
    Instance.objects.update(status="errored", wake_at=None, finished_at=NOW)
    last = read(page.after, (Kind.LOG,))
    assert (last.changes, last.end and last.end.status) == ([], "errored")


def test_other_instances_are_no_news() -> None:
    instance, other = row_of(), row_of(id="other")
    reader = Reader(instance)
    reader.news()
    step_of(other)
    event_of(other)
    log_of(other, "elsewhere")
    assert reader.news() == []


def test_transactions_that_a_cursor_leaves_out_come_again_and_none_is_lost() -> None:
    instance = row_of()
    reader = Reader(instance)
    reader.news()
    with another() as late:
        late(begin)
        late(lambda: log_of(instance, "late"))
        lines = [log_of(instance, f"{number}").message for number in range(MOST_SEEN + 50)]
        reader.limit = 1_000
        assert messages(reader.news()) == lines
        # The text has the newest transactions: the others' rows come again.
        assert messages(reader.news()) == lines[: len(lines) - MOST_SEEN]
        late(commit)
        assert "late" in messages(reader.news())


WRITERS, WRITES = 4, 60


def test_writers_in_any_order_lose_nothing_and_repeat_nothing() -> None:
    """Insert-only rows come exactly once; a row that changes never goes back and ends as it is."""
    instance = row_of()
    for number in range(WRITERS):
        step_of(instance, number + 1)
    written: list[str] = []
    has_written = threading.Barrier(WRITERS + 1)

    def write(number: int) -> None:
        chance = random.Random(number)
        for turn in range(WRITES):
            names = [f"{number}.{turn}.{part}" for part in range(chance.randrange(1, 4))]
            is_kept = chance.random() < 0.8
            with transaction.atomic():
                for name in names:
                    with transaction.atomic(savepoint=chance.random() < 0.6):
                        log_of(instance, name, at=NOW - timedelta(seconds=chance.random() * 100))
                    time.sleep(chance.random() * 0.002)
                Step.objects.filter(instance=instance, seq=number + 1).update(name=str(turn))
                if not is_kept:
                    transaction.set_rollback(True)
            if is_kept:
                written.extend(names)
        has_written.wait(60)
        connections.close_all()

    reader = Reader(instance, limit=5)
    found: list[Change] = []
    with ThreadPoolExecutor(WRITERS) as pool:
        running = [pool.submit(write, number) for number in range(WRITERS)]
        while has_written.n_waiting < WRITERS:
            found += reader.page().changes
            if any(one.done() for one in running):
                break
        has_written.wait(60)
        for one in running:
            one.result(60)
    found += reader.news()
    found += reader.news()

    assert Counter(messages(found)) == Counter(written)
    now = {row.seq: documents.step(row, (), full=False) for row in Step.objects.all()}
    for number in range(1, WRITERS + 1):
        states = [one.document for one in found if one.kind is Kind.STEP and one.document["seq"] == number]
        assert {**states[-1], "attempts": []} == {**now[number], "generation": 1}
        turns = [int(state["name"]) for state in states if state["name"].isdecimal()]
        assert turns == sorted({*turns})
    assert reader.news() == []


def test_ten_thousand_steps_come_in_pages() -> None:
    instance = row_of()
    Step.objects.bulk_create(
        Step(
            instance=instance,
            generation=1,
            seq=seq,
            kind="do",
            name="s",
            count=seq,
            status="running",
            started_at=NOW + timedelta(seconds=seq // 7),
        )
        for seq in range(1, 10_001)
    )
    found = [one.document["seq"] for one in Reader(instance, limit=1_000).news() if one.kind is Kind.STEP]
    assert found == [*range(1, 10_001)]


@pytest.mark.parametrize(
    "text",
    ["", "x", "é", "A" * 9_000, "MQ", "LQ", "MS4xLjEuMS4xLjEuMQ", "Li4uLi4u", "====", "MS4tLi0uLS4tLi0uLQ"],
)
def test_a_cursor_that_no_stream_sent_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursorError):
        Cursor.of(text, 1)


def test_a_cursor_of_another_instance_or_database_is_refused() -> None:
    instance, other = row_of(), row_of(id="other")
    with pytest.raises(InvalidCursorError, match="another instance"):
        Cursor.of(read(Cursor(instance.key)).after.text(), other.key)
    with pytest.raises(InvalidCursorError, match="another database"):
        read(Cursor(instance.key, since=Mark(2**62)))
    until = replace(Cursor(instance.key), until=Mark(2), place=Place(2**61, 1, 1, 1, 1))
    with pytest.raises(InvalidCursorError):
        Cursor.of(until.text(), instance.key)
    huge = replace(Cursor(instance.key), since=Mark(2**63 - 1, frozenset({2**63 - 1})))
    assert Cursor.of(huge.text(), instance.key) == huge


def test_a_row_from_before_four_billion_transactions_may_come_again_but_none_is_missed() -> None:
    """Numbers of transactions are compared in full: the row is of this epoch, whatever its low bits are."""
    instance = row_of()
    reader = Reader(instance)
    reader.news()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM (FREEZE) engine_instance")
        cursor.execute("VACUUM (FREEZE) engine_step")
    assert reader.news() == []
    assert Attempt.objects.count() == 0
    step_of(instance)
    assert kinds(reader.news()) == ["step"]
