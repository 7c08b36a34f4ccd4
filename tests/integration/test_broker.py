"""The broker: users' tasks arrive once and in order, and instances that must run alone do."""

from __future__ import annotations

import logging
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from django.db.models.functions import Now
from django_q.brokers import get_broker
from django_q.models import OrmQ
from django_q.signing import SignedPackage
from django_q.tasks import async_task

from engine.models import Instance, Worker
from engine.steer import notify
from engine.worker.cluster import shift_task
from engine.worker.cluster.broker import Broker
from engine.worker.cluster.dispatcher import SWEEP_SECONDS, Dispatcher
from engine.worker.cluster.process_locks import Flag
from engine.worker.cluster.queue import Queue
from engine.worker.database import claim_sql
from engine.worker.database.connect import LimitedConnection

pytestmark = pytest.mark.django_db(transaction=True)

FORK = multiprocessing.get_context("fork")
WORKFLOWS = ("here", "there")
ROOM = 4
PATIENCE = 60.0


class Subclass(Broker):
    """A subclass of the broker, as users may write one."""


class Pusher:
    """A broker as it is in the pusher of a cluster with two shifts."""

    def __init__(self, *, room: int = ROOM) -> None:
        self.stop, self.room = Flag(), Queue(room)
        self.broker = Broker()
        shift_task.prepare(start=Flag(), stop=self.stop, most_leaving=1)
        self.broker.open(stop=self.stop, shifts=2, room=self.room)
        self.dispatcher.workflows = lambda: WORKFLOWS
        self.dispatcher.room_size = room

    @property
    def dispatcher(self) -> Dispatcher:
        assert self.broker.dispatcher is not None
        return self.broker.dispatcher

    def get(self, *, within: float = PATIENCE) -> list[tuple[int | None, dict[str, Any]]]:
        """Return the next packages, unpacked; empty if nothing comes in time."""
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

    def settle(self) -> None:
        """Let it connect and find nothing to do."""
        assert self.get(within=0.3) == []

    def close(self) -> None:
        self.dispatcher.connection.close()


@pytest.fixture
def pusher(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pusher]:
    monkeypatch.setattr(shift_task, "_shared", None)  # as it is before and after
    with closing(Pusher()) as made:
        yield made


def due(id: str, *, workflow: str = "here", seconds: float = 0) -> None:
    """Write an instance that is due after this time."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_instance (workflow, id, status, params, wake_at) VALUES "
            "(%s, %s, 'queued', 'null', clock_timestamp() + %s * interval '1 second')",
            [workflow, id, seconds],
        )


def hold(id: str, *, worker_id: int, workflow: str = "here") -> None:
    due(id, workflow=workflow)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE engine_instance SET status = 'running', owner = %s, "
            "wake_at = clock_timestamp() + interval '30 seconds' WHERE id = %s",
            [worker_id, id],
        )


def a_task(text: str = "") -> None:
    """What the tests queue; it never runs here."""


TASK = "tests.integration.test_broker.a_task"


# Instances that must run alone


def quarantined(pusher: Pusher) -> int:
    connection = pusher.dispatcher.connection
    return connection.quarantined(workflows=WORKFLOWS, limits=pusher.dispatcher.limits())


def test_what_must_run_alone_and_is_due_is_counted(pusher: Pusher) -> None:
    pusher.settle()
    due("one")
    due("later", seconds=3600)
    due("unknown", workflow="elsewhere")
    Instance.objects.update(quarantined=True)
    due("ordinary")
    assert quarantined(pusher) == 1


def test_a_death_has_what_must_run_alone_looked_for_at_once(pusher: Pusher) -> None:
    """Also if it is cleared only a moment later."""
    opened: list[int] = []
    pusher.dispatcher.quarantine.open = lambda now, waiting: opened.append(waiting)  # type: ignore[method-assign]
    pusher.settle()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [notify.WAKE, notify.REAP])
    assert pusher.get(within=0.1) == []
    due("one")
    Instance.objects.update(quarantined=True)
    assert pusher.get(within=0.5) == []
    assert opened[:1] == [1]


def test_of_a_full_workflow_nothing_that_must_run_alone_is_counted(pusher: Pusher) -> None:
    """Nor of one with one slot more."""
    pusher.dispatcher.limits = lambda: {"there": 2}
    pusher.settle()
    for name in ("one", "two"):
        hold(name, workflow="there", worker_id=77)
    for name in ("three", "four"):
        due(name, workflow="there")
    Instance.objects.filter(id__in=["three", "four"]).update(quarantined=True)
    assert quarantined(pusher) == 0
    Instance.objects.filter(id="one").update(status="paused", owner=None, wake_at=None, paused_at=Now())
    assert quarantined(pusher) == 1


def test_the_count_touches_few_rows_of_many() -> None:
    """Also of a workflow with a limit, whether it has free slots or not."""
    hold("holder", worker_id=77)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_instance (workflow, id, status, waiting_for, params, wake_at) "
            "SELECT 'here', 'i' || n, 'waiting', 'sleep', 'null', clock_timestamp() + n * interval '1 hour' "
            "FROM generate_series(1, 20000) AS n"
        )
        cursor.execute("ANALYZE engine_instance")
        limited = {"unlimited": ["there"], "limited": ["here"]}
        for more in (
            {"unlimited": list(WORKFLOWS), "limited": [], "limits": []},
            limited | {"limits": [1]},
            limited | {"limits": [5]},
        ):
            values = {"quarantined": 100, **more}
            cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {claim_sql.QUARANTINED}", values)
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
    pusher.dispatcher.retry = 0.3
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
    deadline = time.monotonic() + 60
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
        async_task(TASK, turn)
        assert [task["args"] for _, task in pusher.get()] == [(turn,)]


def test_it_says_once_that_the_database_is_away_and_never_raises(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pusher.settle()
    with caplog.at_level(logging.INFO, logger="engine.cluster"):
        cut_all()
        monkeypatch.setattr(LimitedConnection, "connect", _refuse)
        assert pusher.get(within=1.5) == []
        monkeypatch.undo()
        async_task(TASK)
        assert len(pusher.get()) == 1
    said = [record.getMessage() for record in caplog.records if record.name == "engine.cluster"]
    assert len(said) == 2
    assert "keeps trying" in said[0]
    assert "reconnected to its database" in said[1]


def _refuse(**_: Any) -> None:
    raise psycopg.OperationalError("connection refused")


def test_a_defect_of_ours_does_not_end_the_pusher(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pusher.dispatcher, "next", lambda: 1 / 0)
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
            "INSERT INTO engine_worker (role, name, worker_id, workflows, slots, started_at, seen_at) VALUES "
            "('cluster', 'dead', 1, '{}', 1, now(), now() - interval '61 seconds'), "
            "('shift', 'alive', 2, '{}', 1, now(), now() - interval '50 seconds')"
        )
    pusher.settle()
    cluster, other = Worker.objects.order_by("role")
    assert (cluster.role, cluster.workflows, cluster.slots) == ("cluster", ["here", "there"], 128)
    assert cluster.name == pusher.dispatcher.membership.cluster
    assert other.name == "alive"

    pusher.stop.set()
    assert pusher.broker.dequeue() is None
    assert [worker.name for worker in Worker.objects.all()] == ["alive"]
