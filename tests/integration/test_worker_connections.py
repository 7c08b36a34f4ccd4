"""A worker's own connections give up a silent network, also where the project's settings say nothing about it."""

from __future__ import annotations

import asyncio

import pytest
from django.db import connections

from engine.models.connection import parameters
from engine.worker.database.connect import connect, connect_limited
from engine.worker.database.shift_connection import ShiftConnection
from engine.worker.database.worker_lock import WorkerLock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def bare_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections["default"].settings_dict, "OPTIONS", {})


@pytest.mark.usefixtures("bare_settings")
def test_a_connection_of_the_loop_is_given_up_after_8_seconds() -> None:
    async def ask() -> dict[str, str]:
        connection = await connect("one")
        async with connection:
            return connection.info.get_parameters()

    found = asyncio.run(ask())
    assert (found["tcp_user_timeout"], found["connect_timeout"], found["keepalives_idle"]) == (
        "8000",
        "5",
        "10",
    )


@pytest.mark.usefixtures("bare_settings")
def test_the_connection_of_the_lock_is_kept_longer() -> None:
    async def ask() -> tuple[str, str]:
        lock, other = await WorkerLock.take("one"), await ShiftConnection.open("two")
        try:
            return tuple(one._connection.info.get_parameters()["tcp_user_timeout"] for one in (lock, other))  # type: ignore[return-value]
        finally:
            await other.close()
            await lock._connection.close()

    assert asyncio.run(ask()) == ("15000", "8000")


@pytest.mark.usefixtures("bare_settings")
def test_a_connection_of_a_thread_does_not_wait_for_ever_to_be_opened() -> None:
    with connect_limited(3, **parameters()) as connection:
        assert connection.info.get_parameters()["connect_timeout"] == "5"
    with connect_limited(3, **(parameters() | {"connect_timeout": 2})) as connection:
        assert connection.info.get_parameters()["connect_timeout"] == "2"
