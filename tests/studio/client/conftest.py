"""Both clients, driven alike: what one does, the other must do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from studio.client import AsyncClient, Client

TOKEN = "rpr_secret-of-the-test"

Ask = Callable[..., Any]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the pauses of the clients instead of making them."""
    made: list[float] = []

    async def sleep(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr("studio.client.client.time.sleep", made.append)
    monkeypatch.setattr("studio.client.async_client.asyncio.sleep", sleep)
    return made


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Call a method of a client and return its result; of an iterator, the list."""

    def ask_sync(url: str, name: str, *args: Any, options: dict[str, Any] | None = None, **more: Any) -> Any:
        with Client(url, TOKEN, **(options or {})) as client:
            found = getattr(client, name)(*args, **more)
            return list(found) if hasattr(found, "__next__") else found

    async def ask_async(
        url: str, name: str, *args: Any, options: dict[str, Any] | None = None, **more: Any
    ) -> Any:
        async with AsyncClient(url, TOKEN, **(options or {})) as client:
            found = getattr(client, name)(*args, **more)
            if hasattr(found, "__anext__"):
                return [one async for one in found]
            return await found

    def ask_in_loop(*args: Any, **more: Any) -> Any:
        return asyncio.run(ask_async(*args, **more))

    return ask_sync if request.param == "sync" else ask_in_loop
