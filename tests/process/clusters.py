"""A cluster as people start it, `manage.py workers`, in processes that a test may kill."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django_q.signing import SignedPackage

from engine.worker.cluster.broker_connection import TASKS
from engine.worker.database import cluster_sql as sql
from studio.machine.mortal import dies_with_parent
from tests.live import PROJECT
from tests.processes import MARK, marked, wait_until_none

WORKERS = 3


# A wait that takes longer fails the test; how long a busy machine takes is not tested.
PATIENCE = 60.0

# A stop that takes less was not held up: the grace of a shift is 10 s, and so are other timeouts.
SOON = 8.0


def wait_until(condition: Callable[[], object], *, within: float = PATIENCE) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"not within {within} s"
        time.sleep(0.01)


class Cluster:
    """One cluster with its processes by their role, and ways to give it tasks."""

    def __init__(self, dsn: str, home: Path, *, size: int = WORKERS, **variables: str) -> None:
        self.dsn = dsn
        self.size = size
        self.project = PROJECT
        self.run = secrets.token_hex(8)
        self.notes = home / f"notes-{self.run}"
        self.log = home / f"log-{self.run}"
        self.variables = {
            **{name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ},
            "DATABASE_URL": dsn,
            "REPRISE_HOME": str(settings.REPRISE["HOME"]),
            "REPRISE_APPS": "tests.sample,tests.process",
            "REPRISE_ROLE": "cluster",
            "PYTHONPATH": str(PROJECT),
            MARK: self.run,
            **variables,
        }
        self.process: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        """Start it without waiting for anything."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(self.project / "manage.py"), "workers"],
                cwd=self.project,
                env=self.variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=dies_with_parent(signal.SIGTERM),
            )

    def start(self) -> Cluster:
        self.launch()
        wait_until(lambda: len(self.children()) == self.size + 2)
        wait_until(lambda: len(self.shifts()) == max(1, self.size - 1))
        # The cluster serves its queue: tests may count on it from here.
        self.note("ready")
        self.wait_for("ready")
        # And nothing is in transit, say in a monitor that the test kills.
        wait_until(lambda: self.queued() == 0)
        return self

    @property
    def main(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def sentinel(self) -> int:
        (pid,) = _children_of(self.main)
        return pid

    def children(self) -> list[int]:
        """Return the processes that the sentinel forked, oldest first: workers, monitor, pusher."""
        guards = _children_of(self.main)
        return _children_of(guards[0]) if guards else []

    @property
    def workers(self) -> list[int]:
        return self.children()[: self.size]

    @property
    def monitor(self) -> int:
        return self.children()[self.size]

    @property
    def pusher(self) -> int:
        return self.children()[self.size + 1]

    def shifts(self) -> set[int]:
        """Return the processes that say that they run a shift, and live."""
        rows = self.query("SELECT name FROM engine_worker WHERE role = 'shift'")
        return {int(name.rpartition(":")[2]) for (name,) in rows} & set(self.children())

    def send(self, function: str, *args: Any, **options: Any) -> int:
        """Queue a task as `async_task` does; return its row's id."""
        key = uuid.uuid4().hex
        task = {"id": key, "name": key, "func": function, "args": args, "kwargs": {}, **options}
        task |= {"started": datetime.now(UTC), "ack_failure": True}
        values = {"key": "reprise", "payload": SignedPackage.dumps(task), "channel": TASKS}
        (row,) = self.query(sql.ENQUEUE_TASK, values)
        return int(row[0])

    def note(self, text: str) -> int:
        return self.send("tests.process.tasks.note", str(self.notes), text)

    def begin(self, workflow: str, id: str, *, seconds: float = 0.0) -> None:
        """Start an instance as `workflow.start` does; it leaves notes of its name and process."""
        params = json.dumps({"notes": str(self.notes), "name": id, "seconds": seconds})
        self.query(
            "WITH started AS (INSERT INTO engine_instance (workflow, id, status, params, wake_at) "
            "VALUES (%s, %s, 'queued', %s::json, clock_timestamp())) SELECT pg_notify('engine_wake', '')",
            [workflow, id, params],
        )

    def begin_many(self, workflow: str, id: str, count: int, *, seconds: float = 0.0) -> None:
        """Start some at once, named by a number after `id`."""
        self.query(
            "WITH started AS (INSERT INTO engine_instance (workflow, id, status, params, wake_at) "
            "SELECT %s, %s || '-' || n, 'queued', json_build_object('notes', %s::text, 'name', %s || '-' || n, "
            "'seconds', %s::float8), clock_timestamp() FROM generate_series(1, %s) AS n) "
            "SELECT pg_notify('engine_wake', '')",
            [workflow, id, str(self.notes), id, seconds, count],
        )

    def workers_at(self, name: str) -> set[int]:
        """Return the processes that worked at the instances whose names begin so."""
        lines = [line.split() for line in self.noted() if line.startswith(name)]
        return {int(line[1]) for line in lines if len(line) == 2}

    def wait_for_status(self, id: str, status: str) -> None:
        def has_it() -> bool:
            return self.query("SELECT status FROM engine_instance WHERE id = %s", [id]) == [(status,)]

        try:
            wait_until(has_it)
        except AssertionError as error:
            rows = self.query("SELECT id, status, error::text FROM engine_instance WHERE id = %s", [id])
            raise AssertionError(f"{rows}, not {status}:\n{self.log.read_text()}") from error

    def noted(self) -> list[str]:
        return self.notes.read_text().splitlines() if self.notes.exists() else []

    def wait_for(self, text: str) -> None:
        try:
            wait_until(lambda: text in self.noted())
        except AssertionError as error:
            raise AssertionError(f"no note {text!r} in {self.noted()}:\n{self.log.read_text()}") from error

    def query(self, statement: str, values: Any = None) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def queued(self) -> int:
        ((count,),) = self.query("SELECT count(*) FROM django_q_ormq")
        return int(count)

    def left(self) -> dict[int, str]:
        """Return the processes that do not end."""
        return wait_until_none(self.run, timeout=PATIENCE / 4)

    def stop(self, sign: signal.Signals = signal.SIGTERM, *, within: float = PATIENCE) -> float:
        """Stop it as a supervisor does; return how long that took."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(sign)
        self.process.wait(within)
        return time.monotonic() - began

    def end(self) -> None:
        """Leave nothing behind, whatever the test has done."""
        for pid in marked(self.run):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if self.process is not None:
            self.process.wait(60)


def _children_of(pid: int) -> list[int]:
    try:
        return sorted(int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    except FileNotFoundError:
        return []
