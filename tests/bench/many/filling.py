"""Write what the shop has made into a database, by COPY, with all constraints, indexes and triggers in place."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
from psycopg import sql

from tests.bench.many import people
from tests.bench.many.flows import NAMES
from tests.bench.many.life import Rows
from tests.bench.many.lines import COLUMNS
from tests.bench.many.shop import Shop, Size

NUMBERED = ("engine_instance", "engine_generation", "engine_event", "engine_audit")
PROGRESS_SECONDS = 5.0
WORKERS = """
INSERT INTO engine_worker (role, name, worker_id, workflows, slots, held, started_at, seen_at)
SELECT role, name, id, %(names)s::text[], slots, held, clock_timestamp() - interval '5 hours', clock_timestamp()
FROM (
    SELECT 'cluster' AS role, 'worker-1:2100' AS name, -2100 AS id, 1 AS slots, 0::bigint AS held
    UNION ALL
    SELECT 'shift', shift.name, shift.id, %(slots)s, (SELECT count(*) FROM engine_instance i WHERE i.owner = shift.id)
    FROM unnest(%(ids)s::integer[], %(shifts)s::text[]) AS shift (id, name)
) AS worker
ON CONFLICT (worker_id) DO UPDATE SET held = excluded.held, seen_at = excluded.seen_at
"""


class NotEmptyError(Exception):
    """The database has instances, and `--add` was not given."""


def fill(
    connection: psycopg.Connection, size: Size, now: int, tell: Callable[[str], None], *, adds: bool = False
) -> None:
    """Make the rows and write them, a batch a transaction; then set the sequences and analyze the tables.

    Raises NotEmptyError for a database with instances, unless it `adds`.
    """
    first_keys = {table: _last_key(connection, table) + 1 for table in NUMBERED}
    if first_keys["engine_instance"] > 1 and not adds:
        raise NotEmptyError
    connection.execute("SET synchronous_commit = off")
    connection.commit()
    shop = Shop(size, now, first_keys)
    _write_all(connection, shop, tell)
    for table in NUMBERED:
        connection.execute(
            "SELECT setval(pg_get_serial_sequence(%s, 'key'), %s)", [table, _next(connection, table)]
        )
    ids, names = zip(*people.WORKERS, strict=True)
    values = {"names": [*NAMES], "slots": people.SLOTS, "ids": [*ids], "shifts": [*names]}
    connection.execute(WORKERS, values)
    connection.commit()
    tell("Analyzing the tables")
    connection.autocommit = True
    connection.execute("VACUUM (ANALYZE)")  # as autovacuum does in time


def _write_all(connection: psycopg.Connection, shop: Shop, tell: Callable[[str], None]) -> None:
    """Write one batch while the next one is made."""
    began = told_at = time.monotonic()
    with ThreadPoolExecutor(1) as writer:
        written = writer.submit(lambda: None)
        for batch in shop.batches():
            written.result()
            written = writer.submit(_write, connection, batch)
            if (now := time.monotonic()) - told_at >= PROGRESS_SECONDS:
                told_at = now
                tell(f"{shop.made:,} instances, {shop.steps:,} steps, {now - began:.0f} s")
        written.result()
    tell(f"{shop.made:,} instances, {shop.steps:,} steps, {time.monotonic() - began:.0f} s")


def _write(connection: psycopg.Connection, batch: Rows) -> None:
    with connection.cursor() as cursor:
        for table, lines in batch.items():
            names = sql.SQL(", ").join(map(sql.Identifier, COLUMNS[table].split()))
            statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), names)
            with cursor.copy(statement) as copy:
                copy.write("".join(lines))
    connection.commit()


def _last_key(connection: psycopg.Connection, table: str) -> int:
    statement = sql.SQL("SELECT coalesce(max(key), 0) FROM {}").format(sql.Identifier(table))
    found = connection.execute(statement).fetchone()
    assert found is not None
    return int(found[0])


def _next(connection: psycopg.Connection, table: str) -> int:
    return max(1, _last_key(connection, table))
