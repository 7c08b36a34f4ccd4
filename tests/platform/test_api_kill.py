"""The web process is killed before or after the commit of a POST with an Idempotency-Key, and the request is repeated.

The repeated request goes to another process. What was asked for happens once, and both answers are the same.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from studio.machine.mortal import dies_with_parent
from studio.supervisor.address import answers
from tests.live import PROJECT, LiveStack, free_port
from tests.platform.programs import API, JSON, Answer, Program, program
from tests.platform.visitor import At, Port, head, talk
from tests.shifts import wait_until

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

START = f"{API}/workflows/tick/instances"
BODY = b'{"tags":["killed"]}'
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ 'engine_instance'"


@contextmanager
def another(stack: LiveStack, application: str) -> Iterator[tuple[At, subprocess.Popen[bytes]]]:
    """Serve the stack's database by one more process."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "daphne", "-v", "0", "-p", str(port), application],
        cwd=PROJECT,
        env=stack.variables,
        stdin=subprocess.DEVNULL,
        preexec_fn=dies_with_parent(signal.SIGTERM),
    )
    try:
        wait_until(lambda: answers("127.0.0.1", port), what="the other server")
        yield At(port), process
    finally:
        process.kill()
        process.wait()


def start(port: Port, sender: Program, key: str) -> bytes:
    about = [
        f"Content-Type: {JSON}".encode(),
        b"Content-Length: %d" % len(BODY),
        f"Idempotency-Key: {key}".encode(),
    ]
    return talk(port, head(port, f"POST {START} HTTP/1.1", sender.authorization, *about) + BODY)


def started(stack: LiveStack) -> list[str]:
    with psycopg.connect(stack.dsn()) as database:
        rows = database.execute(
            "SELECT id FROM engine_instance WHERE 'killed' = ANY(tags) ORDER BY key"
        ).fetchall()
    return [row[0] for row in rows]


def actions(stack: LiveStack, instance: str) -> list[tuple[object, ...]]:
    with psycopg.connect(stack.dsn()) as database:
        return database.execute(
            "SELECT verb, outcome FROM engine_audit WHERE instance_id = %s", [instance]
        ).fetchall()


def test_a_process_that_dies_after_the_commit_has_done_it_once(api_stack: LiveStack) -> None:
    sender, before = program(api_stack), started(api_stack)
    with another(api_stack, "tests.platform.dying_server:application") as (port, process):
        assert start(port, sender, "after") == b""
        assert process.wait(60) == -signal.SIGKILL
    made = started(api_stack)
    assert len(made) == len(before) + 1

    again = [Answer.of(start(api_stack, sender, "after")) for _ in range(2)]

    assert started(api_stack) == made
    assert [one.status for one in again] == [201, 201]
    assert [one.headers["idempotency-replayed"] for one in again] == ["true", "true"]
    assert again[0].body == again[1].body
    document = json.loads(again[0].body)["instance"]
    assert (document["id"], document["status"]) == (made[-1], "queued")
    assert again[0].headers["location"].endswith(made[-1])
    assert actions(api_stack, made[-1]) == [("start", "done")]


def test_a_process_that_dies_before_the_commit_has_done_nothing(api_stack: LiveStack) -> None:
    sender, before = program(api_stack), started(api_stack)
    with another(api_stack, "studio.asgi:application") as (port, process):
        with (
            psycopg.connect(api_stack.dsn()) as database,
            psycopg.connect(api_stack.dsn(), autocommit=True) as watcher,
        ):
            database.execute("LOCK TABLE engine_instance IN SHARE MODE")
            thread = threading.Thread(target=start, args=[port, sender, "before"])
            thread.start()
            wait_until(
                lambda: watcher.execute(WAITING).fetchone() != (0,), what="the request in its transaction"
            )
            process.kill()
            process.wait()
            thread.join(60)
        assert started(api_stack) == before

    again = [Answer.of(start(api_stack, sender, "before")) for _ in range(2)]

    assert [one.status for one in again] == [201, 201]
    assert ["idempotency-replayed" in one.headers for one in again] == [False, True]
    assert again[0].body == again[1].body
    assert len(started(api_stack)) == len(before) + 1
