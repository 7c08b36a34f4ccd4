"""Delete finished instances when their retention has expired, in small batches.

A worker runs `sweep` every hour, next to its shift (`engine.worker.periodic`). It never deletes an instance that is not
finished, that an open parent or a waiter may still need, or whose workflow this code does not declare. It never waits
for a lock: locked rows are left for the next sweep.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from engine.declare.registry import workflows
from engine.steer import audit, notify
from engine.steer.clock import database_time
from engine.steer.deletion import remove
from engine.values.states import FINAL, FINAL_SQL

VERB = "retention"

# After a transaction that took longer than this, batches become smaller. Measured on two slow cores, with 100,000
# instances of five steps: a sweep that finds nothing takes 14 ms, a batch of 500 deletions about 60 ms.
LONG_SECONDS = 1.0

# Uses the index of the lists, oldest first.
_PAGE = """
    SELECT key, created_at <= %(cutoff)s, finished_at <= %(cutoff)s AND retention IS NULL
    FROM engine_instance
    WHERE workflow = %(workflow)s AND status = %(status)s AND key > %(after)s
    ORDER BY key LIMIT %(limit)s
"""

_IS_OVER = "i.status = %(status)s AND i.finished_at <= %(cutoff)s AND i.retention IS NULL"

# NULL means forever, and so does a missing rule.
_IS_OVER_BY_ITS_OWN = f"""
    i.retention IS NOT NULL AND i.status IN {FINAL_SQL}
    AND i.finished_at + (i.retention ->> i.status::text)::float8 * interval '1 second' <= %(now)s
"""

_OWN_PAGE = f"""
    SELECT i.key FROM engine_instance i
    WHERE {_IS_OVER_BY_ITS_OWN} AND i.workflow = ANY (%(workflows)s) AND i.key > %(after)s
    ORDER BY i.key LIMIT %(limit)s
"""  # noqa: S608


# An instance restarted meanwhile no longer matches: PostgreSQL reads a row again after locking it. The rows are deleted
# by a second statement, which sees everything written before the lock.
def _doomed(is_over: str) -> str:
    return f"""
    SELECT i.key, i.workflow, i.status FROM engine_instance i
    WHERE i.key = ANY (%(keys)s) AND {is_over} AND NOT i.notify_pending
      AND NOT EXISTS (
          SELECT FROM engine_instance parent
          WHERE parent.key = i.parent_key AND parent.status NOT IN {FINAL_SQL}
      )
      AND NOT EXISTS (SELECT FROM engine_waiter w WHERE w.instance_id = i.key)
    ORDER BY i.key
    FOR UPDATE OF i SKIP LOCKED
    """  # noqa: S608


_DOOMED, _DOOMED_BY_THEIR_OWN = _doomed(_IS_OVER), _doomed(_IS_OVER_BY_ITS_OWN)


def sweep(*, batch: int = 500, seconds: float = 60.0, now: datetime | None = None) -> int:
    """Delete what has been kept long enough, for about this many seconds. Return the number of deleted instances.

    Each batch is a transaction and a row in the audit trail. `now` is by default the database's time.
    """
    return _Sweep(batch, time.monotonic() + seconds, now or database_time()).run()


class _Sweep:
    def __init__(self, batch: int, until: float, now: datetime) -> None:
        self._batch = batch
        self._until = until
        self._now = now

    def run(self) -> int:
        return sum(self._workflows()) + sum(self._own())

    def _workflows(self) -> Iterator[int]:
        for name, workflow in workflows.served.items():
            for status in sorted(FINAL):
                kept = getattr(workflow.retention, status)
                if kept is not None:
                    yield from self._status(workflow=name, status=status, cutoff=self._now - kept)

    def _status(self, **values: Any) -> Iterator[int]:
        """Delete page by page, up to the first that was created too late to have expired."""
        after, is_old = 0, True
        while is_old and self._has_time():
            rows = _ask(_PAGE, **values, after=after, limit=self._batch)
            is_old = any(was_created for _, was_created, _ in rows)
            keys = [key for key, _, is_over in rows if is_over]
            if keys:
                yield self._delete(_DOOMED, keys=keys, **values)
            after = rows[-1][0] if rows else after

    def _own(self) -> Iterator[int]:
        """Delete those with a rule of their own."""
        values = {"now": self._now, "workflows": [*workflows.served]}
        after = 0
        while self._has_time():
            keys = [key for (key,) in _ask(_OWN_PAGE, **values, after=after, limit=self._batch)]
            if not keys:
                return
            yield self._delete(_DOOMED_BY_THEIR_OWN, keys=keys, **values)
            after = keys[-1]

    def _delete(self, statement: str, **values: Any) -> int:
        began = time.monotonic()
        with transaction.atomic():
            doomed = _ask(statement, **values)
            if doomed:
                remove([key for key, _, _ in doomed])
                _tell(doomed)
        if time.monotonic() - began > LONG_SECONDS:
            self._batch = max(self._batch // 2, 1)
        return len(doomed)

    def _has_time(self) -> bool:
        return time.monotonic() < self._until


def _tell(deleted: list[tuple[Any, ...]]) -> None:
    counts = Counter((workflow, status) for _, workflow, status in deleted)
    for workflow in sorted({workflow for _, workflow, _ in deleted}):
        data = {status: count for (of, status), count in sorted(counts.items()) if of == workflow}
        audit.note(VERB, workflow, audit.Cause(), data=data)
    notify.tell(changed=[key for key, _, _ in deleted])


def _ask(statement: str, **values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())
