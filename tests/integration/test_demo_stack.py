"""The demo where people meet it: under `make run`, in the cluster's own worker processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from studio.demo.release import fleet
from tests.live import LiveStack
from tests.shifts import wait_until

pytestmark = [pytest.mark.process, pytest.mark.slow]

START = """
from engine import workflows
backup = workflows["database-backup"].start({})
backup.send_event("backup-approval", {"approved": True})
release = workflows["rolling-release"].start({"servers": 2, "cool_down": 600})
print(backup.id, release.id)
"""


def test_demo_runs_in_real_workers_and_its_servers_end_with_the_stack(
    make_stack: Callable[..., LiveStack],
) -> None:
    stack = make_stack(REPRISE_DEMO="1").start()
    backup, release = stack.django(START).split()
    servers = [stack.home / "demo" / "fleets" / release / name for name in ("server-1", "server-2")]

    with psycopg.connect(stack.dsn(), autocommit=True) as database:
        wait_until(lambda: status(database, backup) == "complete", seconds=60)
        wait_until(lambda: status(database, release) == "waiting", seconds=60)
        assert [fleet.is_running(server) for server in servers] == [True, True]
    stack.stop()

    [manifest] = (stack.home / "backups").rglob("*.json")
    assert json.loads(manifest.read_text())["database"] == "reprise"
    wait_until(lambda: not any(map(fleet.is_running, servers)), what="the end of the servers")


def status(database: psycopg.Connection[Any], instance: str) -> str:
    row = database.execute("SELECT status, error FROM engine_instance WHERE id = %s", [instance]).fetchone()
    assert row is not None
    assert row[1] is None
    return str(row[0])
