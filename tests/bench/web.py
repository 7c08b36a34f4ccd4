"""A daphne on the database of the bench, and requests sent as fast as they are answered, or in a rhythm."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

from studio.machine.mortal import dies_with_parent
from tests.live import PROJECT, LiveStack, free_port

PERSON = "bench"  # whose token it is
CONNECTIONS = 8
START_SECONDS = 30.0


@dataclass
class Load:
    """What came of many requests."""

    seconds: float = 0.0
    late: list[float] = field(default_factory=list)  # of each answer, in ms, since it was due

    @property
    def rate(self) -> float:
        return len(self.late) / self.seconds


@dataclass(frozen=True)
class Connection:
    """A connection for one request after the other."""

    socket: socket.socket
    answers: BinaryIO

    def send(self, request: bytes) -> None:
        """Send it and wait for the answer."""
        self.socket.sendall(request)
        head = b"".join(iter(self.answers.readline, b"\r\n"))
        _check(head, self.answers.read(_length(head)))


@dataclass(frozen=True)
class Web:
    """Where a daphne listens, and the token for its API."""

    port: int
    token: str
    pid: int

    def get(self, path: str) -> bytes:
        return self._request("GET", path, b"")

    def post(self, path: str, body: object) -> bytes:
        return self._request("POST", path, json.dumps(body).encode())

    def _request(self, method: str, path: str, body: bytes) -> bytes:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def saturate(self, request: bytes, seconds: float) -> Load:
        """Send it again as soon as it is answered."""
        return asyncio.run(self._load(request, seconds, pause=0.0))

    def pace(self, request: bytes, seconds: float, rate: float) -> Load:
        """Send it so many times a second, whether or not the ones before are answered."""
        return asyncio.run(self._load(request, seconds, pause=CONNECTIONS / rate))

    @contextmanager
    def kept(self) -> Iterator[Connection]:
        """Keep a connection open, as clients do."""
        with socket.create_connection(("127.0.0.1", self.port)) as opened, opened.makefile("rb") as answers:
            yield Connection(opened, answers)

    async def _load(self, request: bytes, seconds: float, pause: float) -> Load:
        load, began = Load(), time.perf_counter()
        workers = (
            self._send(request, load, began + number * pause / CONNECTIONS, began + seconds, pause)
            for number in range(CONNECTIONS)
        )
        await asyncio.gather(*workers)
        load.seconds = time.perf_counter() - began
        return load

    async def _send(self, request: bytes, load: Load, due: float, ends_at: float, pause: float) -> None:
        async with self._connection() as (reader, writer):
            while due < ends_at:
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                writer.write(request)
                await _answered(reader)
                now = time.perf_counter()
                load.late.append((now - due) * 1000)
                due = due + pause if pause else now

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield reader, writer
        finally:
            writer.close()
            await writer.wait_closed()


async def _answered(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    _check(head, await reader.readexactly(_length(head)))


def _length(head: bytes) -> int:
    lengths = [line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return int(lengths[0])


def _check(head: bytes, body: bytes) -> None:
    if not head.startswith(b"HTTP/1.1 2"):
        raise AssertionError(f"{head.splitlines()[:1]}: {body[:500]!r}")


@contextmanager
def serving(stack: LiveStack) -> Iterator[Web]:
    """Run a daphne, with a token of an operator."""
    port = free_port()
    variables = stack.variables | {
        "DJANGO_SETTINGS_MODULE": "tests.bench.web_settings",
        "PORT": str(port),  # its own origin
        "REPRISE_ROLE": "web",
        "REPRISE_API_RATE": "10000000",
    }
    command = [
        sys.executable,
        "-m",
        "daphne",
        "-v",
        "0",
        "--no-server-name",
        "-b",
        "127.0.0.1",
        "-p",
        str(port),
    ]
    with stack.log.open("ab") as log:
        process = subprocess.Popen(
            [*command, "studio.asgi:application"],
            cwd=PROJECT,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=dies_with_parent(signal.SIGTERM),
        )
    try:
        web = Web(port, _token(), process.pid)
        _wait_for(web, process)
        yield web
    finally:
        process.terminate()
        process.wait(20)


def _token() -> str:
    """Make the token of a person who is an operator by a group, as most are."""
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group

    from studio.access import token_rules, tokens

    person, _ = get_user_model().objects.get_or_create(username=PERSON)
    person.groups.add(Group.objects.get(name="reprise-operator"))
    name = f"bench {time.monotonic_ns()}"
    return tokens.issue(name, by=person, owner=person, verbs=token_rules.GIVABLE).text


def _wait_for(web: Web, process: subprocess.Popen[bytes]) -> None:
    ends_at = time.monotonic() + START_SECONDS
    while True:
        try:
            with web.kept() as connection:
                connection.send(web.get("/api/v1/me"))
        except OSError:
            if process.poll() is not None or time.monotonic() > ends_at:
                raise
            time.sleep(0.1)
        else:
            return
