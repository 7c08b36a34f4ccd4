"""A client of a real server, which may send what no browser does."""

from __future__ import annotations

import re
import socket
import time
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from typing import Protocol

from django.conf import settings

from tests.live import LiveStack

FORM = "application/x-www-form-urlencoded"


class Port(Protocol):
    @property
    def port(self) -> int: ...


@dataclass(frozen=True)
class At:
    """A server of which only the port is known."""

    port: int


def talk(stack: Port, request: bytes, *, timeout: float = 60) -> bytes:
    """Send bytes, and read one answer, or to the end of the connection."""
    with socket.create_connection(("127.0.0.1", stack.port), timeout=timeout) as connection:
        answer = b""
        try:
            connection.sendall(request)
            while not _is_whole(answer) and (chunk := connection.recv(65536)):
                answer += chunk
        except (BrokenPipeError, ConnectionResetError):
            pass
        return answer


def _is_whole(answer: bytes) -> bool:
    above, end, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", above, re.IGNORECASE)
    return bool(end) and (length is None or len(body) >= int(length[1]))


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def head(stack: Port, first: str, *headers: bytes, host: str = "") -> bytes:
    """Write the head of a request that closes the connection."""
    lines = [
        first.encode(),
        f"Host: {host or f'127.0.0.1:{stack.port}'}".encode(),
        b"Connection: close",
        *headers,
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def post(stack: Port, path: str, body: bytes, kind: str, *headers: bytes) -> bytes:
    about = [f"Content-Type: {kind}".encode("latin1"), b"Content-Length: %d" % len(body)]
    return head(stack, f"POST {path} HTTP/1.1", *about, *headers) + body


def handshake(stack: Port, *headers: bytes, host: str = "", origin: str = "") -> bytes:
    """Write the request for a socket."""
    lines = [
        b"GET /ws/?topic=home HTTP/1.1",
        f"Host: {host or f'127.0.0.1:{stack.port}'}".encode(),
        f"Origin: {origin or f'http://127.0.0.1:{stack.port}'}".encode("latin1"),
        b"Upgrade: websocket",
        b"Connection: Upgrade",
        b"Sec-WebSocket-Version: 13",
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        *headers,
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n"


class SignedIn:
    """An account's session: its cookies, and the token that its forms need."""

    def __init__(self, stack: LiveStack) -> None:
        self.stack = stack
        self.connection = HTTPConnection("127.0.0.1", stack.port, timeout=60)
        self.cookies: dict[str, str] = {}
        try:
            self._sign_in(*stack.account)
        except BaseException:
            self.close()
            raise

    def _sign_in(self, name: str, password: str) -> None:
        self.ask("GET", "/sign-in/")
        fields = f"username={name}&password={password}&csrfmiddlewaretoken={self.token}"
        answer = self.ask("POST", "/sign-in/", fields.encode(), FORM)
        assert answer.status == 302, answer.status
        assert self.ask("GET", "/instances/").status == 200

    def close(self) -> None:
        self.connection.close()

    def ask(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> HTTPResponse:
        headers = {"Cookie": self.cookie} | ({"Content-Type": kind} if kind else {})
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        answer.read()
        for text in answer.msg.get_all("Set-Cookie", []):
            name, value = text.split(";")[0].split("=", 1)
            self.cookies[name] = value
        return answer

    @property
    def token(self) -> str:
        return self.cookies[settings.CSRF_COOKIE_NAME]

    @property
    def cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())


class Log:
    """What the web process writes from now on."""

    LINE = re.compile(r"^web +│ (.*)$", re.MULTILINE)

    def __init__(self, stack: LiveStack) -> None:
        self.stack = stack
        self.before = len(self._lines())

    def lines(self, at_least: int = 1) -> list[str]:
        """Return them, after a moment in which more might come."""
        deadline = time.monotonic() + 10
        while len(self._lines()) - self.before < at_least and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)
        return self._lines()[self.before :]

    def _lines(self) -> list[str]:
        return self.LINE.findall(self.stack.output())
