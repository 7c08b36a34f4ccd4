"""Pages that are left open: each has a socket, and what it shows has to be what the database says."""

from __future__ import annotations

import base64
import os
import re
import socket
import struct
import time
from urllib.parse import urlsplit

from tests.chaos.browser import Browser
from tests.process import ledger

TOPIC = "/ws/?topic=workflow:kitchen-sink"
COUNT = re.compile(r'class="s-([a-z_]+)"\s+href="[^"]*">.*?<span class="num">([^<]+)</span>', re.DOTALL)
COME_AGAIN = 1.0
PATIENCE = 30.0  # a socket that says nothing for so long is asked whether it lives
TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class SocketClosedError(Exception):
    """The server closed it, or is gone."""


def watch_for_ever(browser: Browser, name: str) -> None:
    """Keep a page open: whenever its socket breaks it comes again, as htmx does."""
    shown = ""
    while True:
        try:
            if not browser.is_signed_in:
                browser.sign_in()
            with Socket(browser) as page:
                ledger.write("opened", instance=name)
                while True:
                    counts = text_of(page.read())
                    if counts not in ("", shown):
                        shown = counts
                        ledger.write("shown", instance=name, step=counts)
        except (OSError, SocketClosedError) as error:
            ledger.write("cut off", instance=name, step=str(error)[:100])
            time.sleep(COME_AGAIN)


def text_of(message: str) -> str:
    """Return the numbers of instances by status that a message brings; nothing if it brings none."""
    if 'id="workflow-counts"' not in message:
        return ""
    return counts_text({status: int(re.sub(r"\D", "", number)) for status, number in COUNT.findall(message)})


def counts_text(counts: dict[str, int]) -> str:
    return " ".join(f"{status} {number}" for status, number in sorted(counts.items()) if number)


class Socket:
    """As much of a WebSocket as it takes to listen."""

    def __init__(self, browser: Browser, topic: str = TOPIC) -> None:
        self._topic = topic
        address = urlsplit(browser.url)
        self._socket = socket.create_connection((address.hostname, address.port), timeout=PATIENCE)
        self._rest = b""
        try:
            self._shake_hands(browser, address.netloc)
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Socket:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def read(self) -> str:
        """Return the next message."""
        while True:
            kind, data = self._frame()
            if kind == TEXT:
                return data.decode()
            if kind == CLOSE:
                raise SocketClosedError(
                    f"closed with {struct.unpack('!H', data[:2])[0] if data else 'no code'}"
                )
            if kind == PING:
                self._send(PONG, data)

    def _shake_hands(self, browser: Browser, host: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {self._topic} HTTP/1.1",
            f"Host: {host}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
            f"Origin: {browser.url}",
            f"Cookie: {browser.cookie}",
        ]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._receive()
        head, self._rest = answer.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n", 1)[0]:
            raise SocketClosedError(head.split(b"\r\n", 1)[0].decode(errors="replace"))

    def _frame(self) -> tuple[int, bytes]:
        first, second = self._take(2)
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack("!H", self._take(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", self._take(8))
        return first & 0x0F, self._take(length)

    def _take(self, count: int) -> bytes:
        while len(self._rest) < count:
            self._rest += self._receive()
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken

    def _receive(self) -> bytes:
        try:
            data = self._socket.recv(65536)
        except TimeoutError:
            self._send(PING, b"")
            data = self._socket.recv(65536)
        if not data:
            raise SocketClosedError("the server is gone")
        return data

    def _send(self, kind: int, data: bytes) -> None:
        """Send a short frame; what a client sends is masked, here with zeros."""
        self._socket.sendall(bytes([0x80 | kind, 0x80 | len(data), 0, 0, 0, 0]) + data)
