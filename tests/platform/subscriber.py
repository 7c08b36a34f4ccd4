"""A program that follows instances on a real server, over plain sockets."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.live import LiveStack

TOKEN = """
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from studio.access import tokens
owner = get_user_model().objects.create_user({name!r})
owner.groups.add(Group.objects.get(name="reprise-operator"))
print(tokens.issue({name!r}, by=owner, owner=owner, verbs=("view", "operate")).text)
"""


def token_of(stack: LiveStack, name: str) -> str:
    """Return a token of a new operator."""
    return stack.django(TOKEN.format(name=name)).strip()


@dataclass
class Event:
    """One server-sent event, and when it arrived."""

    id: str = ""
    type: str = ""
    data: Any = None
    at: float = field(default_factory=time.monotonic)


class Subscriber:
    """One stream. `events` grows as they come."""

    def __init__(self, port: int, address: str, token: str, **headers: str) -> None:
        self.port, self.address = port, address
        self.headers = {"Authorization": f"Bearer {token}", **headers}
        self.status = 0
        self.head = ""
        self.events: list[Event] = []
        self.comments = 0
        self.is_over = False
        self._changed = asyncio.Event()

    async def open(self) -> Subscriber:
        """Send the request and read the head of the answer."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**24)
        lines = [f"GET {self.address} HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in self.headers.items()]
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        self.status = int(self.head.split(" ")[1])
        return self

    async def follow(self) -> Subscriber:
        """Read until the stream ends."""
        text = b""
        try:
            while (chunk := await self._chunk()) is not None:
                *whole, text = (text + chunk).split(b"\n\n")
                for block in whole:
                    self._take(block.decode())
        except (asyncio.IncompleteReadError, ConnectionResetError):
            pass
        self.is_over = True
        self._changed.set()
        await self.close()
        return self

    async def _chunk(self) -> bytes | None:
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        data = await self.reader.readexactly(size + 2)
        return data[:-2] if size else None

    def _take(self, block: str) -> None:
        found = Event()
        for line in block.splitlines():
            name, _, value = line.partition(": ")
            if name == "":
                self.comments += 1
            elif name == "data":
                found.data = json.loads(value)
            elif name == "id":
                found.id = value
            elif name == "event":
                found.type = value
        if found.type:
            self.events.append(found)
        self._changed.set()

    async def until(self, type: str, within_s: float = 60, **data: Any) -> Event:
        """Wait for an event of a type whose data has these values."""

        async def find() -> Event:
            while True:
                for one in self.events:
                    if one.type == type and data.items() <= one.data.items():
                        return one
                assert not self.is_over, [one.type for one in self.events]
                self._changed.clear()
                await self._changed.wait()

        return await asyncio.wait_for(find(), within_s)

    async def close(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()

    @property
    def types(self) -> list[str]:
        return [one.type for one in self.events]


def address_of(workflow: str, id: str, query: str = "") -> str:
    return f"/api/v1/workflows/{workflow}/instances/{id}/subscribe{query and '?' + query}"
