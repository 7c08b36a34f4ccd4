"""Write what the shop has made into a database, by COPY, with all constraints, indexes and triggers in place."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import UTC, datetime

import psycopg
from psycopg import sql

from engine.steer import failure_counts, workflow_counts
from tests.bench.many import people
from tests.bench.many.flows import FLOWS, NAMES
from tests.bench.many.life import Rows
from tests.bench.many.lines import COLUMNS
from tests.bench.many.shop import Shop, Size

NUMBERED = ("engine_instance", "engine_generation", "engine_event", "engine_audit")
PROGRESS_SECONDS = 5.0
CHANGES = 500_000  # that are added up at once
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
# No code here declares them.
SCHEDULES = """
INSERT INTO engine_schedule (workflow, name, expression, timezone, is_declared, last_planned_at, last_instance_key)
SELECT s.workflow, s.name, s.expression, 'UTC', false, latest.created_at, latest.key
FROM unnest(%s::text[], %s::text[], %s::text[]) AS s (workflow, name, expression)
LEFT JOIN LATERAL (
    SELECT key, created_at FROM engine_instance i WHERE i.workflow = s.workflow ORDER BY key DESC LIMIT 1
) AS latest ON true
ON CONFLICT (workflow, name) DO NOTHING
"""
GROUPS = """
INSERT INTO engine_failure (fingerprint, kin, workflow, step, phase, type, message, sample, frame, of_attempts,
    first_seen, counted_to)
SELECT fingerprint, kin, workflow, step, phase, type, message, sample, frame, of_attempts,
    timestamptz 'epoch' + first_us * interval '1 microsecond',
    date_trunc('hour', timestamptz 'epoch' + first_us * interval '1 microsecond', 'UTC')
FROM json_to_recordset(%s) AS f(fingerprint text, kin text, workflow text, step text, phase text, type text,
    message text, sample text, frame text, of_attempts bool, first_us bigint)
ORDER BY fingerprint
ON CONFLICT (fingerprint) DO NOTHING
"""
# What workers ran is counted as it changes, so not by COPY.
ATTEMPTS = """
INSERT INTO engine_workflow_count_delta (workflow, at, what, bucket, amount)
SELECT i.workflow, date_trunc('minute', a.finished_at, 'UTC'), 'succeeded',
    engine_duration_bucket(a.finished_at - a.started_at), count(*)
FROM engine_attempt a JOIN engine_instance i ON i.key = a.instance_id
WHERE a.instance_id >= %(first)s AND a.phase = 'do' AND a.status = 'complete' GROUP BY 1, 2, 4
UNION ALL
SELECT i.workflow, date_trunc('minute', a.started_at, 'UTC'), 'retried', -1, count(*)
FROM engine_attempt a JOIN engine_instance i ON i.key = a.instance_id
WHERE a.instance_id >= %(first)s AND a.phase = 'do' AND a.number > 1 GROUP BY 1, 2
"""


class NotEmptyError(Exception):
    """The database has instances, and `--add` was not given."""


def fill(
    connection: psycopg.Connection, size: Size, now: int, tell: Callable[[str], None], *, adds: bool = False
) -> None:
    """Make the rows and write them, a batch a transaction; then set the sequences and analyze the tables.

    Raises NotEmptyError for a database with instances, unless it `adds`.
    """
    if not adds and connection.execute("SELECT FROM engine_instance LIMIT 1").fetchone() is not None:
        raise NotEmptyError
    first_keys = {table: _next_key(connection, table) for table in NUMBERED}
    connection.execute("SET synchronous_commit = off")
    connection.commit()
    shop = Shop(size, now, first_keys)
    _write_all(connection, shop, tell)
    _write_rest(connection, first_keys)
    _write_groups(connection, shop, now)
    connection.execute(ATTEMPTS, {"first": first_keys["engine_instance"]})
    _add_up(connection, now)
    tell("Analyzing the tables")
    connection.autocommit = True
    connection.execute("VACUUM (ANALYZE)")  # as autovacuum does in time


def _write_rest(connection: psycopg.Connection, first_keys: dict[str, int]) -> None:
    """Set the sequences, and write the few rows that are about all the others."""
    for table, first in first_keys.items():
        connection.execute(
            sql.SQL(
                "SELECT setval(pg_get_serial_sequence(%s, 'key'), greatest(%s, max(key))) FROM {}"
            ).format(sql.Identifier(table)),
            [table, first],
        )
    ids, names = zip(*people.WORKERS, strict=True)
    values = {"names": [*NAMES], "slots": people.SLOTS, "ids": [*ids], "shifts": [*names]}
    connection.execute(WORKERS, values)
    scheduled = [(flow.name, flow.schedule, flow.expression) for flow in FLOWS if flow.schedule]
    connection.execute(SCHEDULES, [[*column] for column in zip(*scheduled, strict=True)])
    connection.commit()


def _write_groups(connection: psycopg.Connection, shop: Shop, now: int) -> None:
    """Write the groups of what has failed, and count their failures as a worker does."""
    groups = [asdict(group) | {"first_us": first} for group, first in shop.groups.values()]
    connection.execute(GROUPS, [json.dumps(groups)])
    values = {"now": datetime.fromtimestamp(now / 1_000_000, UTC), "batch": len(groups)}
    connection.execute(failure_counts.COUNT, values)
    connection.commit()


def _add_up(connection: psycopg.Connection, now: int) -> None:
    """Add what has started, run and ended to the counts, as a worker does every few seconds."""
    values = {"now": datetime.fromtimestamp(now / 1_000_000, UTC), "batch": CHANGES}
    found = CHANGES
    while found == CHANGES:
        (found,) = connection.execute(workflow_counts.FOLD, values).fetchone() or (0,)
        connection.commit()


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
                tell(f"{shop.instances:,} instances, {shop.steps:,} steps, {now - began:.0f} s")
        written.result()
    tell(f"{shop.instances:,} instances, {shop.steps:,} steps, {time.monotonic() - began:.0f} s")


def _write(connection: psycopg.Connection, batch: Rows) -> None:
    with connection.cursor() as cursor:
        for table, lines in batch.items():
            names = sql.SQL(", ").join(map(sql.Identifier, COLUMNS[table].split()))
            statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), names)
            with cursor.copy(statement) as copy:
                copy.write("".join(lines))
    connection.commit()


def _next_key(connection: psycopg.Connection, table: str) -> int:
    """Take a key from the sequence: those of deleted instances are not used again, the audit trail names them."""
    found = connection.execute("SELECT nextval(pg_get_serial_sequence(%s, 'key'))", [table]).fetchone()
    assert found is not None
    return int(found[0])
