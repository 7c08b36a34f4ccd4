"""Users' ordinary tasks in a cluster that also runs workflows."""

import base64
import os
import pickle
import re
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from studio.embedded import DATABASE, EmbeddedServer
from tests.process.clusters import Cluster, wait_until

pytestmark = [pytest.mark.process, pytest.mark.second_tier]


def test_tasks_of_megabytes_travel_there_and_back(shared_cluster: Cluster) -> None:
    parcel = "x" * 3_000_000
    shared_cluster.send("tests.process.tasks.weigh", str(shared_cluster.notes), parcel, save=True)
    shared_cluster.wait_for("3000000")
    wait_until(lambda: shared_cluster.queued() == 0)
    ((saved,),) = shared_cluster.query("SELECT length(result) FROM django_q_task WHERE success")
    assert saved > 3_000_000


def test_a_result_that_cannot_be_pickled_is_a_failure_and_runs_once(shared_cluster: Cluster) -> None:
    shared_cluster.send("tests.process.tasks.unpicklable")
    wait_until(lambda: shared_cluster.queued() == 0)
    ((attempts,),) = shared_cluster.query("SELECT attempt_count FROM django_q_task WHERE NOT success")
    assert attempts == 1


def test_each_of_many_tasks_runs_once(shared_cluster: Cluster) -> None:
    for number in range(200):
        shared_cluster.note(str(number))
    wait_until(lambda: shared_cluster.queued() == 0)
    assert sorted(map(int, shared_cluster.noted())) == list(range(200))


def test_tasks_run_soon_after_every_connection_was_cut(shared_cluster: Cluster) -> None:
    for turn in range(3):
        shared_cluster.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        shared_cluster.note(f"after cut {turn}")
        shared_cluster.wait_for(f"after cut {turn}")
    log = shared_cluster.log.read_text()
    assert "Traceback" not in log, log


def test_a_hung_worker_is_replaced_although_the_count_never_meets_zero(cluster: Cluster) -> None:
    # 1 s and django-q's 3 s of grace; SIGALRM cannot end a stopped process.
    cluster.send("tests.process.tasks.note_and_wait", str(cluster.notes), 60, timeout=1)
    wait_until(lambda: any(line.startswith("begun") for line in cluster.noted()))
    (begun,) = [line for line in cluster.noted() if line.startswith("begun")]
    hung = int(begun.split()[1])
    os.kill(hung, signal.SIGSTOP)
    try:
        wait_until(lambda: len(set(cluster.children()) - {hung}) == 5)
        cluster.note("after the hung one")
        cluster.wait_for("after the hung one")
    finally:
        os.kill(hung, signal.SIGKILL)


def test_a_new_cluster_says_that_it_is_there(shared_cluster: Cluster) -> None:
    ((name, workflows, slots),) = shared_cluster.query(
        "SELECT name, workflows, slots FROM engine_worker WHERE role = 'cluster'"
    )
    assert name.endswith(f":{shared_cluster.main}")
    assert "tick" in workflows
    assert slots == 128


def test_what_a_schedule_has_planned_starts_and_completes(shared_cluster: Cluster) -> None:
    """From end to end: a shift writes the row, looks when it is due, and starts the instance."""
    plans = "SELECT next_at FROM engine_schedule WHERE workflow = 'leap-day' AND next_at > now()"
    wait_until(lambda: bool(shared_cluster.query(plans)))
    shared_cluster.query("UPDATE engine_schedule SET next_at = '2024-02-29' WHERE workflow = 'leap-day'")
    started = "SELECT id, started_by, status FROM engine_instance WHERE workflow = 'leap-day'"
    wait_until(lambda: [row[2] for row in shared_cluster.query(started)] == ["complete"], within=30)
    ((name, by, _),) = shared_cluster.query(started)
    assert (name[4:16], by) == ("0229T000000Z", "schedule 0 0 29 2 *")
    wait_until(lambda: shared_cluster.query(plans), within=20)


def test_a_schedule_is_fired_while_ordinary_tasks_keep_their_worker_busy(cluster: Cluster) -> None:
    plans = "SELECT next_at FROM engine_schedule WHERE workflow = 'leap-day' AND next_at > now()"
    wait_until(lambda: bool(cluster.query(plans)))
    for _ in range(3):
        cluster.send("tests.process.tasks.note_and_wait", str(cluster.notes), 60)
    wait_until(lambda: any(line.startswith("begun") for line in cluster.noted()))
    ((planned_at,),) = cluster.query(
        "UPDATE engine_schedule SET next_at = clock_timestamp() + interval '6 seconds' "
        "WHERE workflow = 'leap-day' RETURNING next_at"
    )
    started = "SELECT created_at FROM engine_instance WHERE workflow = 'leap-day'"
    wait_until(lambda: bool(cluster.query(started)))
    ((created_at,),) = cluster.query(started)
    assert timedelta(0) <= created_at - planned_at < timedelta(seconds=1)
    assert "ended" not in cluster.noted()


def test_a_row_in_the_database_runs_no_function_that_is_not_allowed(
    shared_cluster: Cluster, tmp_path: Path
) -> None:
    """Only the settings say what may run, and only SECRET_KEY signs what has been queued."""
    cluster, owned = shared_cluster, tmp_path / "owned"
    payload = base64.urlsafe_b64encode(
        pickle.dumps({"func": "os.system", "args": (f"touch {owned}",)})
    ).decode()
    for text in (payload, f"{payload}:{'x' * 43}"):
        cluster.query("INSERT INTO django_q_ormq (key, payload, lock) VALUES ('reprise', %s, now())", [text])
    plan = (
        "INSERT INTO django_q_schedule (name, func, args, schedule_type, repeats, next_run)"
        " VALUES (%s, %s, %s, 'O', -1, now())"
    )
    cluster.query(plan, ["foreign", "os.system", repr(f"touch {owned}")])
    cluster.query(plan, ["ours", "tests.process.tasks.note", repr((str(cluster.notes), "scheduled"))])

    cluster.wait_for("scheduled")
    wait_until(lambda: cluster.queued() == 0)
    failures = cluster.query("SELECT name, func FROM django_q_task WHERE NOT success")
    assert failures == [("refused: foreign", "os.system")]
    assert 'The schedule "foreign" may not call os.system' in cluster.log.read_text()
    assert not owned.exists()
    assert cluster.query("SELECT name FROM django_q_schedule WHERE name IN ('foreign', 'ours')") == []


def test_an_idle_cluster_asks_few_statements_a_second(
    make_cluster: Callable[[], Cluster], process_server: EmbeddedServer, process_database: str
) -> None:
    def statements() -> int:
        return len(re.findall(r"LOG:  (?:statement|execute)", process_server.log.read_text(errors="replace")))

    with psycopg.connect(process_database, autocommit=True) as admin:
        # For sessions that begin from now on; nobody else has this database.
        admin.execute(f"ALTER DATABASE {DATABASE} SET log_statement = 'all'")
        try:
            make_cluster()
            time.sleep(2)
            before, began = statements(), time.monotonic()
            time.sleep(6)
            # Each of two shifts looks twice a second for what the dead have left, and sweeps every five.
            assert (statements() - before) / (time.monotonic() - began) < 9
            # The broker looked at least once: it is the log that counts, not silence.
            assert statements() > before
        finally:
            admin.execute(f"ALTER DATABASE {DATABASE} RESET log_statement")
