"""Statements that a worker sends without a cursor: the same answers, errors and ends of the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from engine.worker.database.connect import Connection, connect

pytestmark = pytest.mark.usefixtures("engine_db")

ECHO = "SELECT %(number)s::int, %(text)s::text, %(nothing)s::text, %(list)s::text[], length(%(text)s::text)"
LARGE = 16 * 1024 * 1024  # more than the kernel takes at once


def connected(use: Callable[[Connection], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        connection = await connect("reprise test statements")
        try:
            return await use(connection)
        finally:
            await connection.close()

    return asyncio.run(run())


def values(text: str = "é'\\", number: int = 7) -> dict[str, object]:
    return {"number": number, "text": text, "nothing": None, "list": ["a", "b,\"'"]}


def test_the_rows_are_those_of_a_cursor() -> None:
    async def both(connection: Connection) -> tuple[Any, Any]:
        cursor = await connection.execute(ECHO, values())
        return await connection.fetch(ECHO, values()), await cursor.fetchall()

    fetched, expected = connected(both)
    assert fetched == expected == [(7, "é'\\", None, ["a", "b,\"'"], 3)]


def test_a_statement_is_prepared_once_for_each_type_of_parameters() -> None:
    async def use(connection: Connection) -> Any:
        for number in (1, 2, 70_000, 3):
            assert (await connection.fetch(ECHO, values(number=number)))[0][0] == number
        found = await connection.fetch(
            "SELECT count(*) FROM pg_prepared_statements WHERE name ~ %(name)s", {"name": "^engine"}
        )
        return found[0][0]

    assert connected(use) == 3  # two types of numbers, and the question itself


def test_a_parameter_may_be_larger_than_what_is_sent_at_once() -> None:
    async def use(connection: Connection) -> Any:
        [(_, text, *_, length)] = await connection.fetch(ECHO, values("x" * LARGE))
        return len(text), length

    assert connected(use) == (LARGE, LARGE)


def test_an_error_is_raised_as_psycopg_does_and_the_connection_goes_on() -> None:
    async def use(connection: Connection) -> Any:
        with pytest.raises(psycopg.errors.InvalidTextRepresentation) as refused:
            await connection.fetch("SELECT %(text)s::text::int", {"text": "seven"})
        with pytest.raises(psycopg.errors.UndefinedTable):
            await connection.fetch("SELECT * FROM engine_nothing WHERE id = %(id)s", {"id": 1})
        assert not connection.closed
        return refused.value.sqlstate, await connection.fetch("SELECT 1 + %(one)s::int", {"one": 1})

    assert connected(use) == ("22P02", [(2,)])


def test_a_session_that_is_ended_meanwhile_is_an_error_and_closes_the_connection() -> None:
    async def use(connection: Connection) -> None:
        with pytest.raises(psycopg.Error) as ended:
            await connection.fetch("SELECT pg_terminate_backend(pg_backend_pid()), %(x)s::int", {"x": 1})
        assert (ended.value.sqlstate or "57P").startswith("57P")
        with pytest.raises(psycopg.OperationalError):
            await connection.fetch("SELECT %(x)s::int", {"x": 1})
        assert connection.closed

    connected(use)


def test_a_connection_whose_answer_nobody_waits_for_is_closed() -> None:
    async def use(connection: Connection) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await connection.fetch("SELECT pg_sleep(%(seconds)s::float)", {"seconds": 30})
        assert connection.closed
        assert not connection.waits_longer_than(0)

    connected(use)


def test_a_silent_server_is_noticed() -> None:
    async def use(connection: Connection) -> None:
        asking = asyncio.create_task(connection.fetch("SELECT pg_sleep(%(seconds)s::float)", {"seconds": 30}))
        while not connection.waits_longer_than(0.05):
            await asyncio.sleep(0.01)
        asking.cancel()

    connected(use)
