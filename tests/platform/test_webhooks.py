"""Deliveries to a real daphne: bursts, large and slow bodies, strangers, and a death before the answer."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import psycopg
import pytest

from tests.live import LiveStack
from tests.platform.crowd import HOOK
from tests.platform.delays import least_delayed_of
from tests.platform.held.apps import flag
from tests.platform.test_request_limits import MEBIBYTE, _talk, _web_memory
from tests.platform.visitor import SignedIn, head, post, status_of, talk
from tests.studio.webhooks.conftest import SECRETS, signed

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

JSON = "application/json"
MAKE = """
from django.contrib.auth.models import User
from studio.webhooks import hooks
from studio.webhooks.form import Typed
typed = Typed(name={name!r}, workflow="tick", scheme={scheme!r}, per_minute="100000")
print(hooks.create(typed.values, {secret!r}, by=User.objects.get(username="admin")).slug)
"""


class Sender:
    """A system that delivers to a hook of a stack, which starts `tick`."""

    def __init__(self, stack: LiveStack, name: str, scheme: str = "standard") -> None:
        self.stack, self.scheme = stack, scheme
        made = stack.django(MAKE.format(name=name, scheme=scheme, secret=SECRETS[scheme]))
        self.path = f"/hooks/{made.split()[-1]}"

    def request(self, id: str, body: bytes = b"{}", *, secret: str = "") -> bytes:
        headers = signed(self.scheme, body, id=id, secret=secret)
        lines = [f"{name}: {value}".encode() for name, value in headers.items()]
        return post(self.stack, self.path, body, JSON, *lines)

    def deliver(self, id: str, body: bytes = b"{}", *, secret: str = "") -> int:
        return status_of(talk(self.stack, self.request(id, body, secret=secret)))


@pytest.fixture(scope="module")
def sender(api_stack: LiveStack) -> Sender:
    return Sender(api_stack, "platform")


@pytest.fixture(autouse=True)
def _without_failures(request: pytest.FixtureRequest) -> Iterator[None]:
    if "api_stack" not in request.fixturenames:
        yield
        return
    stack: LiveStack = request.getfixturevalue("api_stack")
    before = stack.output().count("Traceback")
    yield
    assert stack.output().count("Traceback") == before


def count(stack: LiveStack, statement: str, *values: Any) -> int:
    with psycopg.connect(stack.dsn(), autocommit=True) as connection:
        row = connection.execute(statement, values).fetchone()
        assert row is not None
        return int(row[0])


INSTANCES = "SELECT count(*) FROM engine_instance WHERE started_by = %s"


class TestBursts:
    def test_two_hundred_at_once_all_get_through(self, api_stack: LiveStack, sender: Sender) -> None:
        """The anonymous queue of pages would refuse 150 of them."""
        before = count(api_stack, INSTANCES, "webhook platform")
        began = time.monotonic()
        answers = asyncio.run(at_once(api_stack.port, [sender.request(f"burst-{n}") for n in range(200)]))
        took = time.monotonic() - began
        assert [status_of(answer) for answer in answers] == [202] * 200
        assert count(api_stack, INSTANCES, "webhook platform") - before == 200
        assert took < 60  # 6 s when the machine is idle

    def test_twenty_replays_at_once_start_one(self, api_stack: LiveStack, sender: Sender) -> None:
        before = count(api_stack, INSTANCES, "webhook platform")
        answers = asyncio.run(at_once(api_stack.port, [sender.request("replayed")] * 20))
        assert [status_of(answer) for answer in answers] == [202] * 20
        instances = {json.loads(answer.partition(b"\r\n\r\n")[2])["instance"] for answer in answers}
        assert len(instances) == 1
        assert count(api_stack, INSTANCES, "webhook platform") - before == 1

    @pytest.mark.parametrize("name", ["wrong signatures", "1 MiB with wrong signatures"])
    def test_strangers_delay_nobody_who_is_signed_in(
        self, api_stack: LiveStack, sender: Sender, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The limit is that of pages: see test_anonymous_queue."""
        monkeypatch.setenv(HOOK, sender.path)
        with closing(SignedIn(api_stack)) as visitor:
            best = least_delayed_of(api_stack, visitor, name)
        assert best.pressed <= 3 * best.quiet + 0.1
        assert sender.deliver(f"after {name}".replace(" ", "-")) == 202


async def at_once(port: int, requests: list[bytes]) -> list[bytes]:
    async def one(request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(request)
            return await reader.read()
        finally:
            writer.close()

    async with asyncio.timeout(120):
        return await asyncio.gather(*map(one, requests))


class TestBodies:
    def test_of_one_mebibyte_are_accepted_and_no_more(self, sender: Sender) -> None:
        whole = b'{"a":"%s"}' % (b"x" * (MEBIBYTE - 8))
        assert len(whole) == MEBIBYTE
        assert sender.deliver("whole", whole) == 202
        assert sender.deliver("more", whole + b" ") == 413

    def test_in_chunks_are_accepted_up_to_the_same(self, api_stack: LiveStack, sender: Sender) -> None:
        body = b'{"a":"%s"}' % (b"x" * 200_000)
        lines = "".join(
            f"\r\n{name}: {value}" for name, value in signed("standard", body, id="chunks").items()
        )
        chunked = f"POST {sender.path} HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Type: {JSON}{lines}"
        raw = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        assert status_of(_talk(api_stack, chunked, raw)) == 202

    def test_of_four_hundred_mebibytes_cost_next_to_no_memory(
        self, api_stack: LiveStack, sender: Sender
    ) -> None:
        sender.deliver("before")
        before = _web_memory(api_stack)
        said = f"POST {sender.path} HTTP/1.1\r\nContent-Length: {400 * MEBIBYTE}"
        chunked = f"POST {sender.path} HTTP/1.1\r\nTransfer-Encoding: chunked"
        chunk = b"%x\r\n%s\r\n" % (MEBIBYTE, b"x" * MEBIBYTE)
        assert status_of(_talk(api_stack, said, b"x" * MEBIBYTE, repeat=400)) == 413
        assert status_of(_talk(api_stack, chunked, chunk, repeat=400)) == 413
        assert _web_memory(api_stack) - before < 50 * MEBIBYTE

    def test_other_addresses_take_64_kib_from_strangers_as_before(self, api_stack: LiveStack) -> None:
        for path in ("/sign-in/", "/webhooks/new/", "/api/v1/events"):
            assert status_of(talk(api_stack, post(api_stack, path, b"x" * 70_000, JSON))) == 413

    @pytest.mark.parametrize("encoding", ["gzip", "br", "identity"])
    def test_with_an_encoding_are_refused(self, api_stack: LiveStack, sender: Sender, encoding: str) -> None:
        request = post(api_stack, sender.path, b"abc", JSON, f"Content-Encoding: {encoding}".encode())
        assert status_of(talk(api_stack, request)) == 415

    def test_that_are_slow_run_out_of_time(self, api_stack: LiveStack, sender: Sender) -> None:
        request = f"POST {sender.path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{{"
        assert status_of(talk(api_stack, request.encode())) == 408

    def test_only_some_large_ones_are_held_at_a_time(self, api_stack: LiveStack, sender: Sender) -> None:
        large = b'{"a":"%s"}' % (b"x" * 100_000)
        with ExitStack() as stack:
            for _ in range(16):
                one = stack.enter_context(socket.create_connection(("127.0.0.1", api_stack.port), timeout=60))
                length = b"Content-Length: %d" % MEBIBYTE
                one.sendall(head(api_stack, f"POST {sender.path} HTTP/1.1", length) + b"x" * 70_000)
            wait_until(lambda: sender.deliver("too-many", large) == 503)
            assert sender.deliver("small") == 202
        # They left, so that others may come.
        wait_until(lambda: sender.deliver("again", large) == 202)


class TestHostileRequests:
    def test_a_repeated_header_is_refused(self, api_stack: LiveStack, sender: Sender) -> None:
        lines = [f"{name}: {value}".encode() for name, value in signed("standard", b"{}", id="twice").items()]
        for line in lines:
            answer = talk_from_elsewhere(api_stack, post(api_stack, sender.path, b"{}", JSON, *lines, line))
            assert (status_of(answer), b"repeated_header" in answer) == (400, True)

    @pytest.mark.parametrize("value", [b"v1,\xff\xfe", "v1,é".encode(), b"v1,\x01", b"", b",", b"v1"])
    def test_a_signature_of_any_bytes_is_refused(
        self, api_stack: LiveStack, sender: Sender, value: bytes
    ) -> None:
        headers = signed("standard", b"{}", id="bytes")
        lines = [f"{name}: {text}".encode() for name, text in headers.items() if name != "webhook-signature"]
        request = post(api_stack, sender.path, b"{}", JSON, *lines, b"webhook-signature: " + value)
        assert status_of(talk_from_elsewhere(api_stack, request)) in (400, 401)

    def test_no_get_and_no_other_address(self, api_stack: LiveStack, sender: Sender) -> None:
        assert status_of(talk(api_stack, head(api_stack, f"GET {sender.path} HTTP/1.1"))) == 405
        for path in (f"{sender.path}/", "/hooks/", "/hooks/%00", "/hooks/" + "a" * 3000, "/hooks/..%2f"):
            assert status_of(talk(api_stack, post(api_stack, path, b"{}", JSON))) in (400, 404, 414)


class TestDeath:
    """A web process is killed at the two points where a repeated delivery could do too much or too little."""

    @pytest.mark.parametrize("point", ["held-before-commit", "held-before-answer"])
    def test_the_repeated_delivery_leaves_one_instance(
        self, make_stack: Callable[..., LiveStack], point: str
    ) -> None:
        stack = make_stack(REPRISE_APPS="tests.sample,tests.platform.held").start()
        sender = Sender(stack, "mortal")
        file = flag(stack.home, f"{point}-1")
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(talk, stack, sender.request(f"{point}-1"))
            wait_until(file.exists)
            committed = count(stack, INSTANCES, "webhook mortal")
            os.kill(int(file.read_text()), signal.SIGKILL)
            assert first.result(60) == b""
        assert committed == (1 if point == "held-before-answer" else 0)
        wait_until(lambda: is_up(stack))
        answer = talk(stack, sender.request(f"{point}-1"))
        assert status_of(answer) == 202
        document = json.loads(answer.partition(b"\r\n\r\n")[2])
        assert document["is_repeated"] is (committed == 1)
        assert count(stack, INSTANCES, "webhook mortal") == 1
        assert count(stack, "SELECT count(*) FROM engine_instance WHERE id = %s", document["instance"]) == 1


def talk_from_elsewhere(stack: LiveStack, request: bytes) -> bytes:
    """Send a request from an address that has not sent too many wrong signatures."""
    where = ("127.0.0.1", stack.port)
    with socket.create_connection(where, timeout=60, source_address=("127.0.0.7", 0)) as connection:
        connection.sendall(request)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
        return answer


def is_up(stack: LiveStack) -> bool:
    try:
        return status_of(talk(stack, head(stack, "GET /healthz HTTP/1.1"))) == 200
    except (OSError, IndexError):
        return False


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
