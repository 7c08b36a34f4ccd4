"""The broker: shifts go out when they are missed, and people's tasks come through once and in order."""

from __future__ import annotations

import functools
import logging
import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone
from django_q.brokers import get_broker
from django_q.models import OrmQ, Schedule
from django_q.signing import SignedPackage
from django_q.tasks import async_task

from engine import notify
from engine.clock import ClockTimestamp
from engine.models import Instance, ScheduleRow, Worker
from engine.worker import cluster_sql as sql
from engine.worker import watch
from engine.worker.agenda import Agenda, Chore
from engine.worker.broker import Broker
from engine.worker.connect import parameters
from engine.worker.latch import Latch
from engine.worker.places import Places
from engine.worker.queue import Queue
from engine.worker.roster import SWEEP_SECONDS
from engine.worker.sql import TAKE_SEAT
from engine.worker.supply import Supply

pytestmark = pytest.mark.django_db(transaction=True)

FORK = multiprocessing.get_context("fork")
WORKFLOWS = ("here", "there")
ROOM = 4
PATIENCE = 60.0


class Subclass(Broker):
    """What somebody may make of the broker."""


class Pusher:
    """A broker as it is in the pusher of a cluster with two places."""

    def __init__(self, *, room: int = ROOM) -> None:
        self.stop, self.places, self.room = Latch(), Places(2), Queue(room)
        self.broker = Broker()
        self.broker.open(stop=self.stop, places=self.places, room=self.room)
        self.supply.workflows = lambda: WORKFLOWS
        self.supply.room_size = room
        self.supply.agenda = Agenda(is_kept=False, is_default=True)

    @property
    def supply(self) -> Supply:
        assert self.broker.supply is not None
        return self.broker.supply

    def get(self, *, within: float = PATIENCE) -> list[tuple[int | None, dict[str, Any]]]:
        """Return the next packages, unpacked; none if nothing comes in time."""
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            began = time.monotonic()
            packages = self.broker.dequeue()
            assert time.monotonic() - began < SWEEP_SECONDS, (
                "django-q can stop a pusher between two calls only"
            )
            if packages:
                return [(key, SignedPackage.loads(payload)) for key, payload in packages]
        return []

    def shifts(self, *, within: float = PATIENCE) -> list[int]:
        """Return the places that the next packages are for."""
        packages = self.get(within=within)
        assert {task["func"] for _, task in packages} <= {"engine.worker.cluster.shift"}
        return [task["args"][0] for _, task in packages]

    def settle(self) -> None:
        """Let it connect and find nothing to do."""
        assert self.get(within=0.3) == []

    def close(self) -> None:
        self.supply.watch.close()


@pytest.fixture
def pusher() -> Iterator[Pusher]:
    with closing(Pusher()) as made:
        yield made


def due(id: str, *, workflow: str = "here", seconds: float = 0) -> None:
    """Write an instance that is due so long from now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_instance (workflow, id, status, params, wake_at) VALUES "
            "(%s, %s, 'queued', 'null', clock_timestamp() + %s * interval '1 second')",
            [workflow, id, seconds],
        )


def hold(id: str, *, seat: int, workflow: str = "here") -> None:
    due(id, workflow=workflow)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE engine_instance SET status = 'running', owner = %s, "
            "wake_at = clock_timestamp() + interval '30 seconds' WHERE id = %s",
            [seat, id],
        )


@contextmanager
def session() -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(**parameters(), autocommit=True) as other:
        yield other


@contextmanager
def sitting(places: Places, *taken: int) -> Iterator[None]:
    """Let another process sit at the places, as a shift does."""
    sits, leaves = Latch(), Latch()

    def sit() -> None:
        for place in taken:
            assert places.take(place)
        sits.set()
        leaves.wait(30)
        os._exit(0)

    other = FORK.Process(target=sit, daemon=True)
    other.start()
    assert sits.wait(PATIENCE)
    try:
        yield
    finally:
        leaves.set()
        other.join(60)


def a_task(text: str = "") -> None:
    """What the tests queue; it never runs here."""


TASK = "tests.integration.test_broker.a_task"


# Shifts


def test_a_due_instance_gets_one_shift(pusher: Pusher) -> None:
    due("one")
    assert pusher.shifts() == [0]
    assert pusher.get(within=0.3) == []


@pytest.mark.parametrize(("code", "shifts"), [("old", 1), ("other", 0)])
def test_an_instance_whose_old_code_is_back_is_work(pusher: Pusher, code: str, shifts: int) -> None:
    """Nothing is due then, and only a shift resumes it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_instance (workflow, id, status, params, code, paused_at, error) VALUES "
            """('here', 'one', 'paused', 'null', 'old', clock_timestamp(), '{"type": "CodeChangedError"}')"""
        )
    pusher.supply.codes = lambda: {"here": code}
    assert len(pusher.shifts(within=PATIENCE if shifts else 0.3)) == shifts


def test_a_shift_is_no_row_of_anybody_and_has_no_time_limit(pusher: Pusher) -> None:
    due("one")
    ((key, task),) = pusher.get()
    assert key is None
    assert (task["save"], task["timeout"]) == (False, -1)


def test_several_due_instances_get_all_the_places(pusher: Pusher) -> None:
    for name in ("one", "two", "three"):
        due(name, workflow="there")
    assert pusher.shifts() == [0, 1]


def test_a_hint_brings_the_shift_at_once(pusher: Pusher) -> None:
    pusher.settle()
    began = time.monotonic()
    with transaction.atomic():
        due("one")
        notify.wake()
    assert pusher.shifts() == [0]
    assert time.monotonic() - began < SWEEP_SECONDS / 2


@pytest.mark.parametrize("seconds", [0.15, 0.7])
def test_a_shift_comes_exactly_when_an_instance_is_due(pusher: Pusher, seconds: float) -> None:
    began = time.monotonic()
    due("one", seconds=seconds)
    assert pusher.shifts() == [0]
    assert time.monotonic() - began < seconds + SWEEP_SECONDS / 2
    with connection.cursor() as cursor:
        cursor.execute("SELECT wake_at <= clock_timestamp() FROM engine_instance")
        assert cursor.fetchone() == (True,)


@pytest.mark.parametrize("row", [{"workflow": "unknown"}, {"seconds": 3600}])
def test_rows_that_nobody_here_may_claim_bring_no_shift(pusher: Pusher, row: dict[str, Any]) -> None:
    due("one", **row)
    assert pusher.shifts(within=0.5) == []


def test_a_running_shift_is_left_to_take_what_is_due_unless_it_does_not(pusher: Pusher) -> None:
    with sitting(pusher.places, 0):
        pusher.settle()
        due("one")
        notify.wake()
        assert pusher.shifts() == [1]


def test_what_the_running_shift_takes_in_time_brings_no_second_one(pusher: Pusher) -> None:
    with sitting(pusher.places, 0):
        pusher.settle()
        due("one")
        notify.wake()
        hold_by_a_living_seat = TAKE_SEAT, [77]
        with session() as seat:
            seat.execute(*hold_by_a_living_seat)
            Instance.objects.filter(id="one").update(
                status="running", owner=77, wake_at="2100-01-01T00:00:00Z"
            )
            assert pusher.shifts(within=0.5) == []


def test_no_shift_is_sent_while_every_place_is_taken(pusher: Pusher) -> None:
    due("one")
    with sitting(pusher.places, 0, 1):
        notify.wake()
        assert pusher.shifts(within=0.5) == []
    # A place that is left, by a death or an end, is filled again without any hint.
    assert pusher.shifts() == [0]


def test_instances_of_a_worker_whose_seat_is_gone_bring_a_shift(pusher: Pusher) -> None:
    with session() as seat:
        seat.execute(TAKE_SEAT, [77])
        hold("one", seat=77)
        assert pusher.shifts(within=0.3) == []
    notify.tell(wake=True)
    assert pusher.shifts() == [0]


def test_an_end_that_others_do_not_know_of_brings_a_shift(pusher: Pusher) -> None:
    """Or a parent that nobody could tell, because its row was held, would wait until a shift comes for other work."""
    pusher.settle()
    due("ended")
    Instance.objects.update(
        status="complete", output=1, wake_at=None, finished_at=ClockTimestamp(), owes=True
    )
    pusher.supply.roster.look_at = 0.0
    assert pusher.shifts() == [0]


def test_what_finds_no_place_in_a_full_workflow_brings_no_shift(pusher: Pusher) -> None:
    """Only as much as there are places free, and a process for one that must run alone only if it has a place."""
    pusher.supply.limits = lambda: {"there": 2}
    with session() as seat:
        seat.execute(TAKE_SEAT, [77])
        for name in ("one", "two"):
            hold(name, workflow="there", seat=77)
        due("three", workflow="there")
        looked = functools.partial(
            pusher.supply.watch.look, workflows=WORKFLOWS, limits={"there": 2}, places=2, patience=0
        )
        assert pusher.shifts(within=0.3) == []
        assert (looked().due, looked().next_in, looked().isolated) == (0, None, 0)
        Instance.objects.filter(id="three").update(isolated=True)
        assert (looked().due, looked().isolated) == (0, 0)
        Instance.objects.filter(id="one").update(status="paused", owner=None, wake_at=None, paused_at=Now())
        assert (looked().due, looked().isolated) == (0, 1)
        Instance.objects.filter(id="three").update(isolated=False)
        due("four", workflow="there")
        assert looked().due == 1
        notify.wake()
        assert pusher.shifts() == [0]


def test_the_look_touches_few_rows_of_many(pusher: Pusher) -> None:
    """Also of a workflow with a limit, whether it has places or not."""
    hold("holder", seat=77)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_instance (workflow, id, status, waiting_for, params, wake_at) "
            "SELECT 'here', 'i' || n, 'waiting', 'sleep', 'null', clock_timestamp() + n * interval '1 hour' "
            "FROM generate_series(1, 20000) AS n"
        )
        cursor.execute("ANALYZE engine_instance")
        values = {"places": 2, "patience": 0, "isolated": 100, "key": "reprise"}
        limited = {"workflows": ["there"], "limited": ["here"]}
        for statement, more in (
            (sql.LOOK, {"workflows": list(WORKFLOWS)}),
            (sql.LOOK_WITH_LIMITS, limited | {"limits": [1]}),
            (sql.LOOK_WITH_LIMITS, limited | {"limits": [5]}),
        ):
            cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", values | more)
            ((report,),) = cursor.fetchall()
            plan = report[0]["Plan"]
            assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 100


# Ordinary tasks


def test_a_task_arrives_within_milliseconds(pusher: Pusher) -> None:
    pusher.settle()
    began = time.monotonic()
    async_task(TASK, "hello")
    ((key, task),) = pusher.get()
    assert time.monotonic() - began < SWEEP_SECONDS / 2
    assert (task["func"], task["args"]) == (TASK, ("hello",))
    assert OrmQ.objects.get().pk == key


def test_django_q_uses_this_broker() -> None:
    assert type(get_broker()) is Broker


def test_a_task_is_queued_with_the_transaction_that_sends_it(pusher: Pusher) -> None:
    pusher.settle()
    with transaction.atomic():
        async_task(TASK, "kept")
        assert pusher.get(within=0.3) == []
    assert [task["args"] for _, task in pusher.get()] == [("kept",)]

    with transaction.atomic():
        async_task(TASK, "never")
        transaction.set_rollback(True)
    assert pusher.get(within=0.3) == []


def test_tasks_come_in_the_order_in_which_they_were_sent(pusher: Pusher) -> None:
    for number in range(10):
        async_task(TASK, number)
    got: list[int] = []
    while len(got) < 10:
        got += [task["args"][0] for _, task in pusher.get()]
    assert got == list(range(10))


def test_no_more_tasks_are_taken_than_the_workers_queue_has_room_for(pusher: Pusher) -> None:
    for number in range(10):
        async_task(TASK, number)
    for item in range(3):
        pusher.room.put(item)
    assert [task["args"] for _, task in pusher.get()] == [(0,)]
    pusher.room.put("full")
    assert pusher.get(within=0.3) == []
    for _ in range(4):
        pusher.room.get()
    assert [task["args"] for _, task in pusher.get()] == [(1,), (2,), (3,), (4,)]


def test_a_task_is_given_to_one_cluster_only(pusher: Pusher) -> None:
    for number in range(12):
        async_task(TASK, number)
    got = []
    with closing(Pusher()) as other:
        for _ in range(3):
            for one in (pusher, other):
                got += [task["args"][0] for _, task in one.get(within=0.3)]
    assert sorted(got) == list(range(12))


def test_a_task_that_was_not_acknowledged_comes_again_after_retry(pusher: Pusher) -> None:
    pusher.supply.retry = 0.3
    key = async_task(TASK)
    assert [task["id"] for _, task in pusher.get()] == [key]
    assert pusher.get(within=0.2) == []
    time.sleep(0.15)
    # The sweep finds it; here a hint of another task stands for the sweep.
    async_task(TASK)
    again = pusher.get()
    assert key in [task["id"] for _, task in again]
    for row, _ in again:
        assert row is not None
        pusher.broker.acknowledge(row)
    assert OrmQ.objects.count() == 0


def test_tasks_of_other_queues_are_left_alone(pusher: Pusher) -> None:
    Broker(list_key="elsewhere").enqueue(SignedPackage.dumps({"func": TASK}))
    assert pusher.get(within=0.3) == []


def test_a_task_that_cannot_be_unpickled_stays_queued_and_stops_nobody(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # As after a deployment that renamed the class of an argument.
    class Gone:
        pass

    Gone.__qualname__, Gone.__module__ = "Gone", __name__
    monkeypatch.setitem(globals(), "Gone", Gone)
    async_task(TASK, Gone())
    async_task(TASK, "sound")
    monkeypatch.delitem(globals(), "Gone")
    with caplog.at_level(logging.ERROR):
        assert [task["args"] for _, task in pusher.get()] == [("sound",)]
    assert OrmQ.objects.count() == 2
    assert "cannot be unpickled" in caplog.text


def test_a_task_with_a_foreign_signature_is_handed_on_for_django_q_to_drop(pusher: Pusher) -> None:
    pusher.broker.enqueue("not signed")
    deadline = time.monotonic() + 2
    packages = None
    while packages is None and time.monotonic() < deadline:
        packages = pusher.broker.dequeue()
    assert packages is not None
    ((key, payload),) = packages
    assert payload == "not signed"
    assert key is not None
    pusher.broker.fail(key)
    assert OrmQ.objects.count() == 0


def test_a_task_that_runs_in_place_raises_its_own_error() -> None:
    with pytest.raises(ZeroDivisionError):
        async_task("operator.truediv", 1, 0, sync=True)


# Chores


def chores(pusher: Pusher, *, within: float) -> list[str]:
    """Return the functions of the next packages that nobody has queued."""
    return [task["func"].rpartition(".")[2] for key, task in pusher.get(within=within) if key is None]


def test_a_cluster_begins_with_what_came_due_before_it(pusher: Pusher) -> None:
    pusher.supply.agenda = Agenda(is_kept=True, is_default=True)
    assert chores(pusher, within=2) == [Chore.BEGIN]
    assert chores(pusher, within=0.3) == []
    cut_all()
    assert chores(pusher, within=5) == [Chore.BEGIN]


def test_a_schedule_of_django_qs_is_looked_for_when_it_is_due(pusher: Pusher) -> None:
    pusher.supply.agenda = Agenda(is_kept=True, is_default=True)
    assert chores(pusher, within=2) == [Chore.BEGIN]
    soon = timezone.now() + timedelta(seconds=0.3)
    Schedule.objects.create(func=TASK, next_run=soon)
    pusher.supply._beat_at = 0.0  # what comes every five seconds
    assert chores(pusher, within=3) == [Chore.LOOK]
    assert timezone.now() >= soon
    # While it is not seen to, by and by it is looked for again.
    assert chores(pusher, within=3) == [Chore.LOOK]


def test_a_schedule_of_a_workflow_that_it_knows_is_looked_for_whoever_has_the_task(pusher: Pusher) -> None:
    pusher.supply.agenda = Agenda(is_kept=True, is_default=False)
    assert chores(pusher, within=PATIENCE) == [Chore.BEGIN]
    rows = {"name": "m", "expression": "* * * * *", "timezone": "UTC", "next_at": timezone.now()}
    ScheduleRow.objects.create(workflow="unknown", **rows)
    pusher.supply._beat_at = 0.0
    assert chores(pusher, within=0.5) == []
    ScheduleRow.objects.create(workflow="here", **rows)
    pusher.supply._beat_at = 0.0
    assert chores(pusher, within=PATIENCE) == [Chore.LOOK]


def test_schedules_that_are_not_this_clusters_are_not_looked_for(pusher: Pusher) -> None:
    pusher.supply.agenda = Agenda(is_kept=True, is_default=True)
    assert chores(pusher, within=2) == [Chore.BEGIN]
    for said in ({"cluster": "elsewhere"}, {"repeats": 0}, {"next_run": None}):
        Schedule.objects.create(func=TASK, **{"next_run": timezone.now(), **said})
    pusher.supply._beat_at = 0.0
    assert chores(pusher, within=0.5) == []


def test_no_chore_is_sent_that_no_worker_would_begin(pusher: Pusher) -> None:
    for item in range(ROOM):
        pusher.room.put(item)
    pusher.supply.agenda = Agenda(is_kept=True, is_default=True)
    assert chores(pusher, within=0.3) == []
    pusher.room.get()
    assert chores(pusher, within=2) == [Chore.BEGIN]


# Connections and presence


def cut_all() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_it_comes_back_after_its_connection_was_cut(pusher: Pusher) -> None:
    pusher.settle()
    for turn in range(3):
        cut_all()
        due(f"cut-{turn}")
        assert pusher.shifts() != []
        Instance.objects.all().delete()
        pusher.supply.roster.count(frozenset({0, 1}), time.monotonic())
        pusher.supply.roster.count(frozenset(), time.monotonic())


def test_it_says_once_that_the_database_is_away_and_never_raises(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pusher.settle()
    with caplog.at_level(logging.INFO, logger="engine.cluster"):
        cut_all()
        monkeypatch.setattr(watch.Connection, "connect", _refuse)
        assert pusher.get(within=1.5) == []
        monkeypatch.undo()
        due("one")
        assert pusher.shifts() == [0]
    said = [record.getMessage() for record in caplog.records if record.name == "engine.cluster"]
    assert len(said) == 2
    assert "keeps trying" in said[0]
    assert "database back" in said[1]


def _refuse(**_: Any) -> None:
    raise psycopg.OperationalError("connection refused")


def test_a_defect_of_ours_does_not_end_the_pusher(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pusher.supply, "next", lambda: 1 / 0)
    pusher.stop.set()
    with caplog.at_level(logging.ERROR):
        assert pusher.broker.dequeue() is None
    assert "ZeroDivisionError" in caplog.text


def test_a_broker_is_made_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    connection.close()
    monkeypatch.setattr(connection, "connect", _refuse)
    Broker()


def test_a_cluster_is_seen_while_it_runs(pusher: Pusher) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_worker (role, name, seat, workflows, slots, started_at, seen_at) VALUES "
            "('cluster', 'dead', 1, '{}', 1, now(), now() - interval '61 seconds'), "
            "('shift', 'alive', 2, '{}', 1, now(), now() - interval '50 seconds')"
        )
    pusher.settle()
    cluster, other = Worker.objects.order_by("role")
    assert (cluster.role, cluster.workflows, cluster.slots) == ("cluster", ["here", "there"], 128)
    assert cluster.name == pusher.supply.name
    assert other.name == "alive"

    pusher.stop.set()
    assert pusher.broker.dequeue() is None
    assert [worker.name for worker in Worker.objects.all()] == ["alive"]
