"""A database of their own for tests that kill, and the processes that work on it."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from django.db import connections

from engine import invariants
from engine.models import Attempt, Instance, Step, Worker
from studio.embedded import DATABASE, USER, EmbeddedServer, socket_dir
from studio.machine.mortal import dies_with_parent
from tests.live import PROJECT
from tests.process import ledger
from tests.process.nursery import Nursery
from tests.processes import MARK, marked

TABLES = (
    "engine_instance, engine_generation, engine_step, engine_attempt, engine_event, engine_log, engine_worker, "
    "engine_notice, engine_workflow_pause, engine_workflow_count, engine_workflow_count_delta, engine_workflow_span, "
    "engine_bulk_job, engine_bulk_item, engine_code"
)

# A wait that takes longer fails the test; how long a busy machine takes is not tested.
PATIENCE = 60.0


def wait_until(condition: Callable[[], Any], *, seconds: float = PATIENCE, what: str = "it") -> None:
    ends_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends_at, f"{what} did not come true within {seconds} s"
        time.sleep(0.01)


class Arena:
    """One PostgreSQL that may be crashed, one ledger, and forked parts that may be killed."""

    def __init__(self, home: Path) -> None:
        self.run = secrets.token_hex(8)
        self.home = home
        self.log = home / "output.log"
        self.ledger = ledger.Ledger(home / "ledger")
        self.server = EmbeddedServer(home)
        self._clusters: list[subprocess.Popen[bytes]] = []
        kept = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "USER")
        self.variables = {name: os.environ[name] for name in kept if name in os.environ} | {
            "DJANGO_SETTINGS_MODULE": "tests.process.settings",
            "REPRISE_HOME": str(home),
            "REPRISE_APPS": "tests.process.program",
            "REPRISE_ROLE": "cluster",
            "PYTHONPATH": str(PROJECT),
            ledger.VARIABLE: str(self.ledger.path),
            MARK: self.run,
        }

    # Its life

    def open(self) -> None:
        self.server.start()
        self.nursery = Nursery(
            self.launch("-m", "tests.process.nursery", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )
        migration = self.start("migrate")
        wait_until(lambda: not is_alive(migration), seconds=60, what="the migration")

    def close(self) -> None:
        self.nursery.close()
        self.server.stop()

    @contextmanager
    def round(self) -> Iterator[None]:
        """One test: it begins with empty tables, and must leave no process and violate no invariant."""
        self.ledger.clear()
        self.log.write_bytes(b"")
        with self.connect() as connection:
            connection.execute(f"TRUNCATE {TABLES} CASCADE")
        assert self.strays() == {}
        with self._as_default_database():
            try:
                yield
                assert self.violations() == []
            finally:
                left = self.end_all()
        assert left == {}, f"{left}\n{self.output()}"

    @contextmanager
    def _as_default_database(self) -> Iterator[None]:
        """Send this process's own calls of the engine to the arena."""
        default = connections["default"]
        default.close()
        before = dict(default.settings_dict)
        place = {
            "NAME": DATABASE,
            "USER": USER,
            "HOST": str(socket_dir(self.home)),
            "PORT": "",
            "PASSWORD": "",
        }
        default.settings_dict.update(place)
        try:
            yield
        finally:
            default.close()
            default.settings_dict.update(before)

    # Processes

    def launch(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Run Python with these arguments in the arena's environment; its output goes to the arena's log."""
        variables = options.pop("variables", {})
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *arguments],
                cwd=PROJECT,
                env=self.variables | variables,
                stdin=options.pop("stdin", subprocess.DEVNULL),
                stdout=options.pop("stdout", log),
                stderr=log,
                preexec_fn=dies_with_parent(signal.SIGTERM),
            )

    def start(self, part: str, /, **options: Any) -> int:
        """Fork a process that does what the function of that name in `parts` does; return its id."""
        return self.nursery.start(part, **options)

    def worker(self, name: str = "one", *, slots: int = 64, lease: float = 30, **options: float) -> int:
        return self.start("worker", name=name, slots=slots, lease=lease, **options)

    @contextmanager
    def holding(self, *instances: Instance) -> Iterator[None]:
        """Let a sender hold the row of each of them in an open transaction, until the block ends."""
        holders = [self.start("holder", instance=one.id, type="go") for one in instances]
        for one in instances:
            self.ledger.wait_for(what="held", instance=one.id)
        yield
        assert self.ledger.lines(what="released") == []
        for pid in holders:
            send(pid, signal.SIGUSR1)

    def cluster(self) -> subprocess.Popen[bytes]:
        """Start `manage.py workers`, as people do, and wait until it serves."""
        main = self.launch("manage.py", "workers")
        self._clusters.append(main)
        wait_until(lambda: Worker.objects.filter(role="cluster").exists(), what="the cluster")
        return main

    def strays(self) -> dict[int, str]:
        """Return the processes whose parent has died."""
        return {pid: command for pid, command in marked(self.run).items() if pid != self.nursery.process.pid}

    def end_all(self) -> dict[int, str]:
        """End the parts; return those that do not end when they are told to."""
        parts = self.strays()
        for pid in parts:
            send(pid, signal.SIGCONT)
        for pid in parts:
            if _parent(pid) not in parts:  # those end their own children
                send(pid, signal.SIGTERM)
        ends_at = time.monotonic() + 15
        while (left := self.strays()) and time.monotonic() < ends_at:
            time.sleep(0.02)
        for pid in left:
            send(pid, signal.SIGKILL)
        while self._clusters:
            self._clusters.pop().wait(60)
        return left

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    # The database

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.server.dsn(), autocommit=True)

    def violations(self) -> list[invariants.Finding]:
        with self.connect() as connection:
            found = [invariants.look(connection.cursor(), one) for one in invariants.INVARIANTS]
        return [finding for finding in found if finding.count]

    def restart_database(self, sign: signal.Signals) -> float:
        """Stop the server at once (SIGQUIT, as a crash does) or fast (SIGINT); return when it answered again."""
        assert self.server.process is not None
        self.server.process.send_signal(sign)
        self.server.process.wait(20)
        self.server.start()
        connections["default"].close()
        return time.monotonic()

    def kill_session(self, application: str) -> float:
        """Kill one session's process, which makes the server end all of them; return when it answers again."""
        connection = self.connect()
        try:
            query = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE %s"
            sessions = connection.execute(query, [f"{application}%"]).fetchall()
            send(sessions[0][0], signal.SIGKILL)
            wait_until(lambda: not _is_open(connection), what="the end of all sessions")
        finally:
            connection.close()
        wait_until(self._answers, seconds=20, what="the recovery of the server")
        connections["default"].close()
        return time.monotonic()

    def cut_connection(self, application: str) -> None:
        """End one session, as a broken network or an administrator does."""
        with self.connect() as connection:
            query = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE %s"
            assert connection.execute(query, [f"{application}%"]).fetchall() == [(True,)]

    def _answers(self) -> bool:
        try:
            with self.connect() as connection:
                return connection.execute("SELECT true").fetchone() == (True,)
        except psycopg.OperationalError:
            return False


def _is_open(connection: psycopg.Connection) -> bool:
    try:
        connection.execute("SELECT true")
    except psycopg.OperationalError:
        return False
    return True


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except FileNotFoundError:
        return None


def send(pid: int, sign: signal.Signals) -> None:
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        return


def kill(pid: int) -> None:
    """Kill a process and wait until it is gone."""
    send(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid), what="the end of a killed process")


def attempts(instance: Instance, step: str) -> list[tuple[int, str]]:
    """Return the attempts at a step, as (number, status)."""
    (seq,) = Step.objects.filter(instance=instance, name=step).values_list("seq", flat=True)
    rows = Attempt.objects.filter(instance=instance, step_seq=seq).order_by("number")
    return list(rows.values_list("number", "status"))


def wait_for(instances: list[Instance], *statuses: str, seconds: float = PATIENCE) -> None:
    """Wait until all have one of the statuses; by default, until all are complete."""
    wanted = statuses or ("complete",)
    others = Instance.objects.filter(key__in=[one.key for one in instances]).exclude(status__in=wanted)
    ends_at = time.monotonic() + seconds
    while others.exists():
        if time.monotonic() > ends_at:
            left = [f"{one.id}: {one.status} {one.waiting_for} {one.error or ''}" for one in others[:5]]
            raise AssertionError(f"{others.count()} not {wanted} after {seconds} s: {left}")
        time.sleep(0.02)
