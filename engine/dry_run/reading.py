"""Read open instances and their histories in batches of bounded size, each from one snapshot that is read only."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from django.db import connection, transaction

from engine.replay.host import Claimed
from engine.replay.records.history import History, Page
from engine.values.columns import microseconds
from engine.values.states import FINAL
from engine.values.system import NOT_SYSTEM
from engine.worker.database import history_sql, rows

BATCH = 200  # instances
BATCH_BYTES = 4 * 1024 * 1024  # of params and steps, as stored

_OPEN = f"""
    SELECT i.key FROM engine_instance i
    WHERE i.key > %(after)s AND NOT i.status = ANY (%(final)s)
      AND {NOT_SYSTEM}
      AND (%(workflows)s::text[] IS NULL OR i.workflow = ANY (%(workflows)s))
    ORDER BY i.key LIMIT {BATCH}
"""
_SIZES = """
    SELECT i.key, 100 + pg_column_size(i.params) + coalesce((
        SELECT sum(100 + coalesce(pg_column_size(s.output), 0) + coalesce(pg_column_size(s.error), 0))
        FROM engine_step s WHERE s.instance_id = i.key AND s.generation = i.generation
    ), 0) FROM engine_instance i WHERE i.key = ANY (%(keys)s) ORDER BY i.key
"""
_INSTANCES = f"""
    SELECT i.key, i.workflow, i.id, i.generation, i.params::text, i.status, i.code, i.ends_as, i.depth,
        i.keys_from,
        CASE WHEN i.rollback = 'running' THEN i.error::text END,
        {microseconds("coalesce(i.started_at, statement_timestamp())")}, {microseconds("statement_timestamp()")}
    FROM engine_instance i WHERE i.key = ANY (%(keys)s) AND NOT i.status = ANY (%(final)s) ORDER BY i.key
"""


class Recorded(NamedTuple):
    """An open instance as it is recorded, and when it was read."""

    claimed: Claimed
    status: str
    history: History
    now_us: int


@contextmanager
def read_only() -> Iterator[None]:
    """Let the connection refuse to write, also in the transactions of code that is called meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET default_transaction_read_only")


def open_instances(workflows: Collection[str] | None) -> Iterator[Recorded]:
    """Yield all open instances, or those of these workflows, in the order in which they were created."""
    after = 0
    names = None if workflows is None else sorted(workflows)
    while True:
        with connection.cursor() as cursor:
            cursor.execute(_OPEN, {"after": after, "final": sorted(FINAL), "workflows": names})
            keys = [key for (key,) in cursor.fetchall()]
        if not keys:
            return
        for portion in _portions(keys):
            yield from read(portion)
        after = keys[-1]


def _portions(keys: list[int]) -> Iterator[list[int]]:
    """Split a batch so that each part stays below BATCH_BYTES, or is a single instance."""
    with connection.cursor() as cursor:
        cursor.execute(_SIZES, {"keys": keys})
        sizes = cursor.fetchall()
    portion, total = list[int](), 0
    for key, size in sizes:
        if portion and total + size > BATCH_BYTES:
            yield portion
            portion, total = [], 0
        portion.append(key)
        total += size
    if portion:
        yield portion


def read(keys: list[int]) -> list[Recorded]:
    """Read these instances with their steps, from one snapshot; those that have ended meanwhile are left out.

    Within a transaction of the caller's, such as a test's, it reads what that sees.
    """
    is_own = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        if is_own:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        cursor.execute(_INSTANCES, {"keys": keys, "final": sorted(FINAL)})
        found = cursor.fetchall()
        which = {"keys": [row[0] for row in found], "generations": [row[3] for row in found]}
        cursor.execute(history_sql.HISTORY_STEPS, which)
        histories = rows.histories(which["keys"], cursor.fetchall())
    return [_recorded(row, histories[row[0]]) for row in found]


def _recorded(row: rows.Row, history: History) -> Recorded:
    key, workflow, name, generation, params, status, code, ends_as, depth, *rest = row
    keys_from, error, started_us, now_us = rest
    claimed = Claimed(
        key=key,
        workflow=workflow,
        id=name,
        generation=generation,
        fence=0,
        signals=0,
        params=params,
        started_us=started_us,
        deadline_us=None,  # a dry run takes no time
        quarantined=False,
        code=code,
        ends_as=ends_as,
        error=error,
        depth=depth,
        keys_from=keys_from,
    )
    history.events = Page([], now_us)
    return Recorded(claimed, status, history, now_us)
