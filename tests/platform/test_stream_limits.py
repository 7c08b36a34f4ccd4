"""What the server does for streams: no limit of time, and word of a connection that takes no more."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from studio.supervisor.address import answers
from tests.live import free_port

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

MEBIBYTE = 1024 * 1024


class Server:
    """A tiny server, which lets an answer take one second."""

    def __init__(self) -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "tests.platform.tiny_server", str(self.port), "60"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not answers("127.0.0.1", self.port):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def ask(self, path: str) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return connection


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    try:
        yield server
    finally:
        server.process.kill()
        server.process.communicate()


def _everything(connection: socket.socket) -> bytes:
    with connection:
        text = b""
        while chunk := connection.recv(65536):
            text += chunk
        return text


def test_a_stream_goes_on_after_the_time_that_an_answer_may_take(server: Server) -> None:
    text = _everything(server.ask("/stream"))
    assert b"begin " in text
    assert b"end" in text
    assert b"x-reprise-flow" not in text.lower()


def test_other_answers_are_cut(server: Server) -> None:
    text = _everything(server.ask("/answer"))
    assert b"begin " in text
    assert b"end" not in text


def test_a_reader_that_takes_nothing_is_noticed_and_cut(server: Server) -> None:
    assert server.process.stdout is not None
    with server.ask("/flood") as connection:
        sent = int(server.process.stdout.readline())
        # What the kernel buffers on both sides, and little more.
        assert sent < 16 * MEBIBYTE
        assert 0 < _until_reset(connection) <= sent + 1024


def _until_reset(connection: socket.socket) -> int:
    """Return the number of bytes that come before the connection is reset."""
    received = 0
    try:
        while chunk := connection.recv(MEBIBYTE):
            received += len(chunk)
    except ConnectionResetError:
        return received
    raise AssertionError("The answer ended as a whole one.")
