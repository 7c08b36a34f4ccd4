"""`/healthz` and `/readyz`, as views and in front of everything else."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connections
from django.test import Client

from engine.status.health import Facts, Health
from studio.access.anonymous_queue import AnonymousQueue
from studio.health import readiness as room
from studio.health.readiness import Question, Readiness, details, readiness
from studio.server.probes import Probes

FORWARDING = (
    *(b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-forwarded", b"forwarded", b"via"),
    *(b"x-real-ip", b"x-client-ip", b"true-client-ip", b"cf-connecting-ip"),
)
READY = Health(True, (), None)
FACTS = Facts(1, 2, 128, 3, None, 0, None, None, 0, 0, 0, 0, 0)
DOWN = Health(False, ("The database does not answer (OperationalError).",), None)


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Callable[[Health], None]:
    """Let the database say this."""

    def say(found: Health) -> None:
        for question, answer in (
            (readiness, found),
            (details, Health(found.is_ready, found.problems, FACTS)),
        ):
            monkeypatch.setattr(question, "_asked", None)
            monkeypatch.setattr(question, "_read", lambda answer=answer: answer)

    say(READY)
    return say


@pytest.fixture(autouse=True)
def _fresh(says: Callable[[Health], None]) -> Iterator[None]:
    yield
    for question in (readiness, details):
        question._asked = None


async def ask(
    path: str,
    *,
    method: str = "GET",
    client: str = "203.0.113.9",
    headers: tuple[tuple[bytes, bytes], ...] = (),
    inner: Any = None,
) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "root_path": "",
        "headers": [(b"host", b"10.42.0.7:8000"), *headers],
        "client": [client, 4711],
    }
    await Probes(inner or _refused)(scope, _nothing, send)
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, sent[1]["body"]


async def _nothing() -> Any:
    raise AssertionError("a probe has no body")


async def _refused(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": b"passed on"})


async def test_a_probe_is_answered_whatever_its_host_and_never_stored() -> None:
    status, headers, body = await ask("/healthz")
    assert (status, json.loads(body)) == (200, {"status": "ok"})
    assert (headers["cache-control"], headers["content-type"]) == ("no-store", "application/json")
    assert "set-cookie" not in headers
    assert (await ask("/readyz"))[0] == 200


async def test_head_is_answered_without_a_body() -> None:
    status, headers, body = await ask("/healthz", method="HEAD")
    assert (status, headers["content-length"], body) == (200, "17", b"")


@pytest.mark.parametrize(("path", "method"), [("/", "GET"), ("/healthz", "POST"), ("/x/healthz", "GET")])
async def test_everything_else_is_passed_on(path: str, method: str) -> None:
    assert (await ask(path, method=method))[0] == 418


@pytest.mark.urls("tests.studio.health.prefixed")
async def test_probes_are_below_the_prefix_of_the_studio() -> None:
    assert (await ask("/ops/healthz"))[0] == 200
    assert (await ask("/healthz"))[0] == 418


async def test_healthz_never_asks_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "_read", lambda: pytest.fail("asked"))
    assert (await ask("/healthz"))[0] == 200


async def test_a_database_that_is_away_is_not_ready_and_its_address_is_not_told(
    says: Callable[[Health], None],
) -> None:
    says(DOWN)
    status, _, body = await ask("/readyz", client="127.0.0.1")
    assert status == 503
    assert json.loads(body) == {
        "status": "not ready",
        "reason": "The database does not answer (OperationalError).",
    }


async def test_a_database_that_hangs_is_not_ready_within_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(readiness, "_read", lambda: over.wait(60) and READY)
    began = time.monotonic()
    found = await asyncio.gather(*(ask("/readyz") for _ in range(20)))
    over.set()
    assert {status for status, _, _ in found} == {503}
    assert time.monotonic() - began < 30  # 2 s, on a machine that has time
    assert json.loads(found[0][2])["reason"] == "The database did not answer within 2 s."


async def test_many_who_ask_at_once_cost_one_question(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(readiness, "_read", lambda: asked.append(1) or READY)  # type: ignore[func-returns-value]
    await asyncio.gather(*(ask("/readyz") for _ in range(200)))
    assert len(asked) == 1


async def test_a_flood_of_strangers_makes_no_probe_fail() -> None:
    async def busy(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    queue = AnonymousQueue(busy, lambda scope: True)
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": ["10.0.0.1", 1]}
    flood = [asyncio.create_task(queue(dict(scope), _nothing, _nothing)) for _ in range(40)]  # type: ignore[arg-type]
    await asyncio.sleep(0)
    assert (await ask("/healthz", inner=queue))[0] == (await ask("/readyz", inner=queue))[0] == 200
    for task in flood:
        task.cancel()
    await asyncio.gather(*flood, return_exceptions=True)


class TestDetails:
    async def test_this_machine_sees_them(self) -> None:
        for client in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
            _, _, body = await ask("/readyz", client=client)
            assert json.loads(body)["workers"] == 2

    async def test_others_do_not(self) -> None:
        assert json.loads((await ask("/readyz"))[2]) == {"status": "ready"}

    async def test_listed_networks_do(self, settings: LazySettings) -> None:
        settings.REPRISE = {**settings.REPRISE, "HEALTH_ADDRESSES": ["203.0.113.0/24"]}
        assert "workers" in json.loads((await ask("/readyz"))[2])
        assert "workers" not in json.loads((await ask("/readyz", client="127.0.0.1"))[2])

    @pytest.mark.parametrize("name", FORWARDING)
    async def test_what_a_proxy_on_this_machine_forwards_is_not_of_this_machine(self, name: bytes) -> None:
        header = ((name, b"203.0.113.9"),)
        assert json.loads((await ask("/readyz", client="127.0.0.1", headers=header))[2]) == {
            "status": "ready"
        }

    async def test_a_trusted_proxy_says_who_asks(self, settings: LazySettings) -> None:
        settings.REPRISE = {**settings.REPRISE, "TRUSTED_PROXIES": ["10.0.0.1"]}
        for asks, sees in ((b"127.0.0.1", True), (b"203.0.113.9", False)):
            header = ((b"x-forwarded-for", asks),)
            _, _, body = await ask("/readyz", client="10.0.0.1", headers=header)
            assert ("workers" in json.loads(body)) is sees

    async def test_a_slow_count_does_not_make_it_unready(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(details, "_read", lambda: room.TOO_SLOW)
        status, _, body = await ask("/readyz", client="127.0.0.1")
        assert (status, json.loads(body)["is_healthy"]) == (200, False)


class TestViews:
    """For servers that do not run the Studio's ASGI application."""

    def test_they_answer_the_same(self, client: Client) -> None:
        for path in ("/healthz", "/readyz"):
            answer = client.get(path, REMOTE_ADDR="203.0.113.9")
            assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
            assert not answer.cookies
            assert client.head(path).content == b""
        assert client.get("/readyz").json()["workers"] == 2
        assert client.get("/readyz", REMOTE_ADDR="203.0.113.9").json() == {"status": "ready"}

    def test_they_open_no_session_and_make_no_query(self, client: Client) -> None:
        """Without the mark of a test that uses the database, a query fails."""
        client.cookies["reprise-session"] = "x" * 32
        assert client.get("/healthz").status_code == 200

    @pytest.mark.parametrize("path", ["/healthz", "/readyz"])
    def test_they_begin_no_transaction_where_all_views_do(
        self, client: Client, monkeypatch: pytest.MonkeyPatch, path: str
    ) -> None:
        monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", True)
        assert client.get(path).status_code == 200

    def test_an_unready_one_answers_503(self, client: Client, says: Callable[[Health], None]) -> None:
        says(DOWN)
        assert client.get("/readyz").status_code == 503


def test_a_change_is_logged_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [DOWN, DOWN, READY, READY]
    monkeypatch.setattr(room.health, "read", lambda **options: found.pop(0))
    read = Readiness()
    with caplog.at_level("INFO", "reprise.web"):
        for _ in range(4):
            read()
    assert [record.message for record in caplog.records] == [
        "Not ready: The database does not answer (OperationalError).",
        "Ready again.",
    ]


@pytest.mark.usefixtures("engine_db")
def test_a_migrated_database_is_ready() -> None:
    assert Question(Readiness()).wait() == READY
