"""Sockets of tabs, opened as browsers open them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client

from engine.models import Instance
from studio.access import people
from studio.asgi import application
from studio.frame.hub import hub
from studio.live import consumer
from tests.studio import factories

ORIGIN = settings.ENVIRONMENT.origins[0].encode()
HOST = ORIGIN.split(b"//")[1]
Open = Callable[..., Awaitable[WebsocketCommunicator]]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer, "LINGER_S", 0.1)


def cookie_of(user: User) -> str:
    client = Client()
    client.force_login(user)
    return f"{settings.SESSION_COOKIE_NAME}={client.session.session_key}"


class Socket(WebsocketCommunicator):
    """Waits for as long as a busy machine may take, and not for a second."""

    async def connect(self, timeout: float = 60) -> Any:
        return await super().connect(timeout)

    async def receive_output(self, timeout: float = 60) -> Any:
        return await super().receive_output(timeout)

    async def disconnect(self, code: int = 1000, timeout: float = 60) -> None:
        await super().disconnect(code, timeout)


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    """Open sockets, and close them after the test."""
    sockets: list[Socket] = []

    async def open_one(
        topic: str, user: User | None, *, origin: bytes | None = ORIGIN
    ) -> WebsocketCommunicator:
        headers = [(b"host", HOST)] + ([(b"origin", origin)] if origin else [])
        if user is not None:
            headers.append((b"cookie", (await sync_to_async(cookie_of)(user)).encode()))
        socket = Socket(application, f"/ws/?{topic}", headers=headers)
        sockets.append(socket)
        return socket

    yield open_one
    try:
        for socket in sockets:
            await socket.disconnect()
    finally:
        await sync_to_async(connections.close_all)()
        await asyncio.to_thread(close_drawing_threads)


def close_drawing_threads() -> None:
    """Give back the connections of the threads that draw, so that the test database can be dropped."""
    together = threading.Barrier(people.THREADS)

    def close() -> None:
        together.wait(60)
        connections.close_all()

    for future in [people._threads.submit(close) for _ in range(people.THREADS)]:
        future.result(60)


@sync_to_async
def make(role: str = "viewer", status: str = "waiting", **given: Any) -> tuple[User, Instance]:
    return factories.person(role), factories.instance(status, **given)


async def frame(socket: WebsocketCommunicator) -> str:
    """Receive the next frame of HTML."""
    message = await socket.receive_output()
    assert message["type"] == "websocket.send", message
    return str(message["text"])


async def closing_code(socket: WebsocketCommunicator) -> int:
    while True:
        message = await socket.receive_output()
        if message["type"] == "websocket.close":
            return int(message["code"])


async def until_it_listens() -> None:
    """Wait for the Studio's listener; what was drawn before is stale then."""
    async with asyncio.timeout(60):
        while not hub().changes:
            await asyncio.sleep(0.01)


async def drained(tabs: list[WebsocketCommunicator]) -> None:
    for tab in tabs:
        while not await tab.receive_nothing(timeout=0.05, interval=0.01):
            await tab.receive_output()
