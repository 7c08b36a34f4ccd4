"""Shifts run for as long as their cluster: they are replaced at once, and hand over what they do not finish."""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from collections.abc import Callable
from statistics import median

import psycopg
import pytest

from tests.process.apps import CONSTANTS
from tests.process.clusters import PATIENCE, Cluster, wait_until
from tests.process.test_cluster_kills import kill

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

NEVER = 3600.0  # seconds: a body that does not end within a test
SWEEP = 5.0  # seconds: what nobody is told of waits for it


def assert_in_time(late: list[float], *, within: float) -> None:
    """A busy machine may hold up one in ten; nothing waits for a sweep."""
    assert sorted(late)[len(late) * 9 // 10 - 1] < within, late
    assert max(late) < SWEEP, late


def constants(**values: float) -> dict[str, str]:
    """Shorten what a test cannot wait for: `shift__GRACE_SECONDS` is that constant of `engine.worker.shift`."""
    named = {f"engine.worker.{name.replace('__', '.', 1)}": value for name, value in values.items()}
    return {CONSTANTS: json.dumps(named)}


def seconds_until_begun(cluster: Cluster, id: str, *, workflow: str = "errand") -> float:
    """Start an instance, and return how long its first attempt took to begin, by the database's clock."""
    cluster.begin(workflow, id)
    cluster.wait_for_status(id, "complete")
    ((seconds,),) = cluster.query(
        "SELECT extract(epoch FROM a.started_at - i.created_at)::float8 FROM engine_instance i "
        "JOIN engine_attempt a ON a.instance_id = i.key WHERE i.id = %s AND a.number = 1",
        [id],
    )
    return float(seconds)


def test_every_worker_but_one_runs_a_shift_also_without_work(shared_cluster: Cluster) -> None:
    cluster = shared_cluster
    assert len(cluster.shifts()) == 2
    assert cluster.shifts() < set(cluster.workers)
    time.sleep(1)
    assert len(cluster.shifts()) == 2


def test_a_killed_worker_loses_its_work_within_a_second_and_its_shift_is_replaced_within_three(
    make_cluster: Callable[..., Cluster],
) -> None:
    """A busy machine may hold up one kill, and not each. No periodic sweep comes by chance in time."""
    cluster = make_cluster(**constants(claims__SWEEP_SECONDS=NEVER))
    cluster.begin("errand", "warm")  # what is loaded only once is loaded
    cluster.wait_for_status("warm", "complete")
    for name in ("one", "two", "three"):
        lost_after, replaced_after = seconds_after_kill(cluster, name)
        cluster.wait_for_status(name, "complete")
        if lost_after < 1 and replaced_after < 3:
            return
    assert lost_after < 1
    assert replaced_after < 3


def seconds_after_kill(cluster: Cluster, id: str) -> tuple[float, float]:
    """Kill the worker that runs a new instance, and return when another has it, and when as many shifts run."""
    before = cluster.shifts()
    cluster.begin("errand", id, seconds=NEVER)
    wait_until(lambda: len(cluster.workers_at(id)) == 1)
    (victim,) = cluster.workers_at(id)
    began = time.monotonic()
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: cluster.query("SELECT 1 FROM engine_instance WHERE id = %s AND fence > 1", [id]))
    lost_after = time.monotonic() - began
    wait_until(lambda: len(cluster.shifts() - {victim}) == 2)
    assert len(cluster.shifts() & before) == 1
    return lost_after, time.monotonic() - began


def test_all_shifts_killed_at_once_are_replaced_within_three_seconds(cluster: Cluster) -> None:
    replaced_after, late = [], []
    for number in range(3):
        before = cluster.shifts()
        began = time.monotonic()
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda before=before: len(cluster.shifts() - before) == 2)
        replaced_after.append(time.monotonic() - began)
        late.append(seconds_until_begun(cluster, f"after-{number}"))
    assert median(replaced_after) < 3
    assert median(late) < 1


def test_ordinary_tasks_do_not_keep_a_workflow_waiting(cluster: Cluster) -> None:
    for _ in range(5):
        cluster.send("tests.process.tasks.note_and_wait", str(cluster.notes), 20)
    wait_until(lambda: any(line.startswith("begun") for line in cluster.noted()))
    assert median(seconds_until_begun(cluster, f"meanwhile-{number}") for number in range(3)) < 1


def test_workflows_do_not_keep_an_ordinary_task_waiting(cluster: Cluster) -> None:
    for number in range(300):
        cluster.begin("blocking-errand", f"e{number}", seconds=NEVER)
    wait_until(lambda: len(cluster.workers_at("e")) == 2)
    took = []
    for number in range(3):
        began = time.monotonic()
        cluster.note(f"meanwhile-{number}")
        cluster.wait_for(f"meanwhile-{number}")
        took.append(time.monotonic() - began)
    assert median(took) < 2


def test_a_single_worker_runs_the_shift_and_tasks_run_in_a_process_beside_it(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(size=1, DJANGO_SETTINGS_MODULE="tests.process.single_worker")
    (shift,) = cluster.shifts()
    cluster.begin("errand", "long", seconds=NEVER)
    wait_until(lambda: cluster.workers_at("long") == {shift})

    cluster.send("tests.process.tasks.note_pid", str(cluster.notes))
    for number in range(20):
        cluster.note(f"task {number}")
    wait_until(lambda: {f"task {number}" for number in range(20)} <= set(cluster.noted()))
    (helper,) = {int(line) for line in cluster.noted() if line.isdigit()}
    assert helper != shift
    # It ends when there are no more tasks, and the next one comes with the next task.
    wait_until(lambda: helper not in cluster.children())
    cluster.note("again")
    cluster.wait_for("again")
    assert cluster.shifts() == {shift}


def test_a_task_that_is_out_of_time_ends_its_process_beside_a_single_worker(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(size=1, DJANGO_SETTINGS_MODULE="tests.process.single_worker")
    cluster.send("tests.process.tasks.note_and_wait", str(cluster.notes), 60, timeout=1)
    wait_until(lambda: any(line.startswith("begun") for line in cluster.noted()))
    cluster.note("after it")
    cluster.wait_for("after it")
    assert "ended" not in cluster.noted()
    assert len(cluster.shifts()) == 1


def ticks(cluster: Cluster, id: str) -> int:
    return sum(line.startswith(f"tick-{id} ") for line in cluster.noted())


def test_a_shift_that_is_replaced_drives_on_what_it_holds(make_cluster: Callable[..., Cluster]) -> None:
    """Its timers fire, its branches go on, its events arrive, and its long body runs to its end, once."""
    cluster = make_cluster(**constants(retirement__LONGEST_SECONDS=3.0))
    cluster.begin("ticking-errand", "one", seconds=NEVER)
    wait_until(lambda: ticks(cluster, "one") > 0)
    ((holder,),) = [cluster.workers_at("one")]
    wait_until(lambda: holder not in cluster.shifts() or len(cluster.shifts()) == 3)
    assert holder in cluster.children()
    wait_until(lambda: len(cluster.shifts() - {holder}) == 2)

    before, began = ticks(cluster, "one"), time.monotonic()
    time.sleep(3)
    rate = (ticks(cluster, "one") - before) / (time.monotonic() - began)
    assert rate > 2  # one each 0.2 s and what a step takes
    assert median(seconds_until_begun(cluster, f"other-{number}") for number in range(3)) < 1

    ((key,),) = cluster.query("SELECT key FROM engine_instance WHERE id = 'one'")
    cluster.query(
        "WITH sent AS (INSERT INTO engine_event (instance_id, type, payload, received_at) "
        "VALUES (%s, 'stop', 'null', clock_timestamp())), "
        "told AS (UPDATE engine_instance SET signals = signals + 1 WHERE key = %s RETURNING owner) "
        "SELECT pg_notify('engine_wake', owner::text) FROM told",
        [key, key],
    )
    cluster.wait_for_status("one", "complete")
    assert cluster.query(
        "SELECT a.number, a.status FROM engine_attempt a JOIN engine_step s ON s.instance_id = a.instance_id "
        "AND s.seq = a.step_seq WHERE s.name = 'long' AND s.instance_id = %s",
        [key],
    ) == [(1, "cancelled")]
    # Holding nothing any more, it ends.
    wait_until(lambda: holder not in cluster.children())
    assert cluster.query("SELECT 1 FROM engine_attempt WHERE status = 'lost'") == []


def test_work_goes_on_while_shifts_are_replaced_all_the_time(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(**constants(retirement__LONGEST_SECONDS=1.0, retirement__LOOK_SECONDS=0.1))
    late = []
    began = time.monotonic()
    while time.monotonic() - began < 12:
        late.append(seconds_until_begun(cluster, f"e{len(late)}"))
    assert_in_time(late, within=2)
    assert len(cluster.workers_at("e")) > 4
    assert cluster.query("SELECT 1 FROM engine_attempt WHERE status <> 'complete'") == []
    assert cluster.query("SELECT 1 FROM engine_instance WHERE quarantined") == []


def test_new_work_begins_within_two_seconds_although_every_worker_has_bodies_that_never_return(
    cluster: Cluster,
) -> None:
    names = [f"hang-{number}" for number in range(8)]
    for name in names:
        cluster.begin("hanging-errand", name, seconds=NEVER)

    def all_workers_have_some() -> bool:  # one may have taken all so far
        names.append(f"hang-{len(names)}")
        cluster.begin("hanging-errand", names[-1], seconds=NEVER)
        time.sleep(0.05)
        return len(cluster.workers_at("hang")) == 2

    wait_until(all_workers_have_some)
    hung = cluster.workers_at("hang")
    for name in names:
        cluster.wait_for_status(name, "complete")
    late = []
    for number in range(15):
        late.append(seconds_until_begun(cluster, f"new-{number}"))
        time.sleep(1)
    assert_in_time(late, within=2)
    # In the end they cost their processes, and the log says why.
    wait_until(lambda: not hung & set(cluster.children()))
    assert len(cluster.shifts()) == 2
    log = cluster.log.read_text()
    assert log.count("was retired: ") >= 2
    assert "do not return: " in log
    assert "of instance hanging-errand/hang-" in log


def test_sleeps_are_on_time_whatever_else_is_held(cluster: Cluster) -> None:
    for number in range(6):
        cluster.begin("errand", f"long-{number}", seconds=NEVER)
    for number in itertools.count():  # one worker takes them all, until it has no thread left
        cluster.begin("blocking-errand", f"blocking-{number}", seconds=NEVER)
        if len(cluster.workers_at("long") | cluster.workers_at("blocking")) == 2:
            break
        time.sleep(0.05)
    for number in range(100):
        cluster.begin("napping-errand", f"nap-{number}", seconds=0.3 + number % 7 / 10)
        time.sleep(0.05)
    wait_until(
        lambda: cluster.query("SELECT count(*) FROM engine_instance WHERE status = 'complete'") == [(100,)]
    )
    late = [
        float(seconds)
        for (seconds,) in cluster.query(
            "SELECT extract(epoch FROM i.finished_at - s.started_at)::float8 - (i.params ->> 'seconds')::float8 "
            "FROM engine_instance i JOIN engine_step s ON s.instance_id = i.key WHERE s.kind = 'sleep' ORDER BY 1"
        )
    ]
    assert late[0] >= 0
    # One that waited for the others would be late by seconds. How punctual they are alone is measured by the bench.
    assert late[98] < 1, late[-10:]


def test_a_worker_without_a_free_thread_leaves_work_to_the_other(cluster: Cluster) -> None:
    cluster.begin_many("blocking-errand", "long", 16, seconds=NEVER)  # one claim takes them all
    wait_until(lambda: sum(line.startswith("long") for line in cluster.noted()) == 16)
    (full,) = cluster.workers_at("long")
    time.sleep(0.2)
    names = [f"instant-{number}" for number in range(20)]
    late = [seconds_until_begun(cluster, name, workflow="blocking-errand") for name in names]
    assert_in_time(late, within=1)
    assert cluster.workers_at("instant") == cluster.shifts() - {full}


def test_work_begins_in_time_although_no_worker_has_a_free_thread(cluster: Cluster) -> None:
    """What only awaits needs none."""
    for name in ("long-a", "long-b"):
        cluster.begin_many("blocking-errand", name, 16, seconds=NEVER)
        wait_until(lambda name=name: sum(line.startswith(name) for line in cluster.noted()) == 16)
        time.sleep(0.2)
    assert len(cluster.workers_at("long")) == 2
    assert_in_time([seconds_until_begun(cluster, f"instant-{number}") for number in range(10)], within=1)


@pytest.mark.parametrize(
    ("kind", "count", "threads", "within"),
    [("errand", 60, 60, 15), ("blocking-errand", 30, 16, 25), ("counting-errand", 60, 60, 25)],
)
def test_what_a_dead_worker_held_goes_on_soon_however_long_its_bodies(
    make_cluster: Callable[..., Cluster],
    process_database: str,
    kind: str,
    count: int,
    threads: int,
    within: float,
) -> None:
    """Each runs alone for a while, and then beside others: few processes do, and as few sessions as the guide says.

    A shift that has taken more than it has threads for runs so many.
    """
    cluster = make_cluster(**constants(quarantined__HARMLESS_SECONDS=0.5))
    for number in range(count):
        cluster.begin(kind, f"e{number}", seconds=8.0)
    wait_until(lambda: len([line for line in cluster.noted() if line.startswith("e")]) >= threads)
    held = [
        key for (key,) in cluster.query("SELECT instance_id FROM engine_attempt WHERE status = 'running'")
    ]
    for pid in cluster.shifts():
        kill(pid)
    began, seen = time.monotonic(), 0
    again = (
        "SELECT count(DISTINCT instance_id) FROM engine_attempt WHERE number > 1 AND instance_id = ANY (%s)"
    )
    while cluster.query(again, [held]) != [(len(held),)]:
        seen = max(seen, sessions(process_database))
        assert time.monotonic() - began < PATIENCE
        time.sleep(0.05)
    assert len(held) >= threads
    assert time.monotonic() - began < within
    assert seen <= 2 * 25 + 40
    for number in range(count):
        cluster.wait_for_status(f"e{number}", "complete")
    assert cluster.query("SELECT 1 FROM engine_attempt WHERE number > 2") == []


def sessions(database: str) -> int:
    with psycopg.connect(database) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        ((count,),) = connection.execute(query).fetchall()
    return int(count)
