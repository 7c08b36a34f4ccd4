"""Dump a database that goes on changing, and count what the dump holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from pydantic import BaseModel

from engine import StepContext
from studio.demo import processes
from studio.demo.backup import shelf
from studio.demo.backup.connection import connect, environment, hopeless_is_final, one_row
from studio.demo.backup.programs import find
from studio.demo.backup.rows import count_rows
from studio.demo.backup.source import Source

# Somebody who alters a table makes us wait; waiting for ever would make everybody behind us wait, too.
LOCK_PATIENCE = "30s"


class Dump(BaseModel):
    """A dump that waits for its proof, and the rows that it holds, table by table."""

    file: str
    bytes: int
    taken_at: datetime
    rows: dict[str, int]

    @property
    def row_count(self) -> int:
        return sum(self.rows.values())


async def dump(source: Source, folder: str, ctx: StepContext) -> Dump:
    """Dump the database, and count its rows in the very same snapshot.

    Each attempt has a file of its own: what an earlier one left, or a frozen worker still writes, is never taken for
    this one's.
    """
    path = shelf.pending(folder, ctx.instance_id, ctx.attempt)
    programs = await find(source.major, environment(source.database))
    try:
        with hopeless_is_final():
            async with _snapshot(source.database) as (connection, snapshot, taken_at):
                writing = asyncio.create_task(_write(programs.dump, source.database, snapshot, path))
                try:
                    rows = await count_rows(connection)
                    ctx.log.info(
                        "rows counted in the dump's snapshot", tables=len(rows), rows=sum(rows.values())
                    )
                    await writing
                finally:
                    writing.cancel()
                    await asyncio.gather(writing, return_exceptions=True)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    size = path.stat().st_size
    ctx.log.info("dump written", file=path.name, bytes=size)
    return Dump(file=path.name, bytes=size, taken_at=taken_at, rows=rows)


@asynccontextmanager
async def _snapshot(database: str) -> AsyncIterator[tuple[psycopg.AsyncConnection[Any], str, datetime]]:
    """Hold one snapshot open, for pg_dump and for our own counting."""
    connection = await connect(database)
    async with connection:
        await connection.execute("SET statement_timeout = 0")
        await connection.execute("SET idle_in_transaction_session_timeout = 0")
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        snapshot, taken_at = await one_row(connection, "SELECT pg_export_snapshot(), clock_timestamp()")
        yield connection, snapshot, taken_at


async def _write(program: Path, database: str, snapshot: str, path: Path) -> None:
    arguments = ["--format=custom", "--no-password", f"--snapshot={snapshot}", f"--file={path}"]
    arguments.append(f"--lock-wait-timeout={LOCK_PATIENCE}")
    await processes.run(program, arguments, environment=environment(database))
