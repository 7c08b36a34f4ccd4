"""The HTTP API of a daphne that reaches the database through PgBouncer, in both modes; workers connect directly."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from studio.client import Client
from studio.embedded import EmbeddedServer
from studio.machine.mortal import dies_with_parent
from studio.supervisor.address import answers
from tests.deploy.pgbouncer import running
from tests.live import PROJECT, free_port
from tests.process.clusters import Cluster, wait_until
from tests.process.conftest import server_on_a_copy, url_of

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

# Few connections, so that each serves one client after the other.
TRANSACTION = {
    "pool_mode = session": "pool_mode = transaction",
    "default_pool_size = 200": "default_pool_size = 2",
}

TOKEN = """
from django.contrib.auth import get_user_model
from studio.access import tokens
from studio.access.permissions import Verb
admin = get_user_model().objects.create_superuser("of-a-test")
print(tokens.issue("pooled", by=admin, verbs=[Verb.VIEW, Verb.OPERATE]).text)
"""


@pytest.fixture(scope="module")
def server(migrated_home: Path) -> Iterator[EmbeddedServer]:
    with server_on_a_copy(migrated_home) as server:
        yield server


@pytest.fixture(scope="module")
def cluster(server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(url_of(server), tmp_path_factory.mktemp("cluster"))
    try:
        yield cluster.start()
    finally:
        cluster.end()


@pytest.fixture(scope="module")
def token(cluster: Cluster) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", TOKEN],
        cwd=PROJECT,
        env=cluster.variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@contextmanager
def served(cluster: Cluster, database: str, log: Path) -> Iterator[str]:
    """Run a web process on this address of the database; yield its own."""
    port = free_port()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "daphne", "-v", "0", "-p", str(port), "studio.asgi:application"],
            cwd=PROJECT,
            env={
                **cluster.variables,
                "DATABASE_URL": database,
                "REPRISE_ROLE": "web",
                "SECRET_KEY": "0123456789" * 6,
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=dies_with_parent(signal.SIGTERM),
        )
    try:
        wait_until(lambda: answers("127.0.0.1", port))
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@pytest.fixture(params=[{}, TRANSACTION], ids=["session", "transaction"])
def web(
    request: pytest.FixtureRequest, server: EmbeddedServer, cluster: Cluster, tmp_path: Path
) -> Iterator[str]:
    log = tmp_path / "web.log"
    with running(server, **request.param) as database, served(cluster, database, log) as url:
        yield url
    assert "Internal error" not in log.read_text(), log.read_text()[-5000:]


def test_what_programs_do_works_through_it(web: str, token: str) -> None:
    with Client(web, token) as studio:
        for number in range(12):
            # They limit what the server connection may do, which the next client gets.
            asked(f"{web}/readyz", token)
            assert studio.health()["is_healthy"]
            key = f"{web} {number}"
            first, again = (studio.start("tick", tags=[web], idempotency_key=key) for _ in range(2))
            assert first == again
        listed = pages(f"{web}/api/v1/instances?tag={quote(web, safe='')}", token, 5)
        assert [len(page) for page in listed] == [5, 5, 2]
        assert len({one["id"] for page in listed for one in page}) == 12
        *history, end = studio.subscribe("tick", first["id"])
        assert {"step", "attempt", "instance"} <= {event.type for event in history}
        assert (end.type, end.data["status"]) == ("end", "complete")


@pytest.mark.parametrize("web", [TRANSACTION], ids=["transaction"], indirect=True)
def test_in_transaction_mode_a_stream_ends_without_notifications(web: str, token: str) -> None:
    """LISTEN stays with a server connection that others get next; a stream also looks every ten seconds."""
    with Client(web, token) as studio:
        nap = studio.start("nap", {"seconds": 1})
        *_, end = studio.subscribe("nap", nap["id"])
    assert (end.type, end.data["status"]) == ("end", "complete")


def pages(address: str, token: str, limit: int) -> list[list[Any]]:
    found, cursor = [], ""
    while cursor is not None:
        page = asked(f"{address}&limit={limit}{cursor and f'&cursor={cursor}'}", token)
        found.append(page["instances"])
        cursor = page["next_cursor"]
    return found


def asked(address: str, token: str) -> Any:
    request = Request(address, headers={"Authorization": f"Bearer {token}"})
    with urlopen(request, timeout=60) as answer:
        return json.load(answer)
