"""The socket of an open tab, as a browser keeps it: it reads what the Studio sends, and when."""

from __future__ import annotations

import asyncio
import base64
import os
import time
from dataclasses import dataclass, field

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
SHORT, LONG = 126, 127  # lengths that two or eight more bytes tell
MASK = 0x80


@dataclass
class Tab:
    """A tab that watches a topic. `heard` are the frames with the times at which they came."""

    topic: str
    session: str
    heard: list[tuple[float, bytes]] = field(default_factory=list)
    closed: int | None = None

    async def connect(self, port: int, path: str, cookie: str) -> asyncio.Task[None]:
        """Open the socket, and return the task that reads it until it is closed or cancelled."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        key = base64.b64encode(os.urandom(16)).decode()
        writer.write(
            f"GET {path}?topic={self.topic} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Origin: http://127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
            f"Cookie: {cookie}={self.session}\r\n\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101"):
            raise AssertionError(head.splitlines()[0].decode())
        return asyncio.create_task(self._read(reader, writer))

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while self.closed is None:
            first, length = await reader.readexactly(2)
            if length == SHORT:
                length = int.from_bytes(await reader.readexactly(2))
            elif length == LONG:
                length = int.from_bytes(await reader.readexactly(8))
            payload = await reader.readexactly(length)
            match first & 0x0F:
                case kind if kind == TEXT:
                    self.heard.append((time.time(), payload))
                case kind if kind == PING:
                    writer.write(bytes((MASK | PONG, MASK | len(payload))) + bytes(4) + payload)
                case kind if kind == CLOSE:
                    self.closed = int.from_bytes(payload[:2])
