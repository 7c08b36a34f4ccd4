"""Index the instances that were started before their workflow declared a path.

In batches, each a transaction that remembers how far it came: a stopped run is continued by the next. Rows are locked
for the time of a batch only, and never waited for while others are held. Two runs at once do the same work twice, and
nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from engine.models import IndexedPath
from engine.steer.indexing import writers
from engine.steer.indexing.writers import Waiting
from engine.values.states import InstanceStatus

FIRST_BATCH, MOST_AT_ONCE = 500, 5_000  # instances
LONG_SECONDS = 0.25  # batches that take longer become smaller, faster ones larger
AGAIN_SECONDS = 0.1

# The next keys of a workflow: one descent of the index (workflow, status, key) for each status. The primary key would
# read all other workflows as well.
_PAGE = """
SELECT next.key FROM unnest(%(statuses)s::text[]) AS statuses (status)
CROSS JOIN LATERAL (
    SELECT i.key FROM engine_instance i
    WHERE i.workflow = %(workflow)s AND i.status = statuses.status AND i.key > %(after)s AND i.key <= %(last)s
    ORDER BY i.key LIMIT %(limit)s
) AS next
ORDER BY next.key LIMIT %(limit)s
"""

# The paths among these that are still declared. Locked against their removal for the time of a batch.
_DECLARED = """
SELECT key FROM engine_indexedpath WHERE key = ANY (%(paths)s) AND is_declared ORDER BY key FOR SHARE
"""

# A restart may change the params, and removes the output: it must wait, and so must a deletion. What is locked is left
# for the next try.
_LOCKS = {
    "params": """
    SELECT key FROM engine_instance WHERE key = ANY (%(keys)s) ORDER BY key FOR NO KEY UPDATE SKIP LOCKED
    """,
    "output": """
    SELECT key FROM engine_instance WHERE key = ANY (%(keys)s) AND status = 'complete'
    ORDER BY key FOR NO KEY UPDATE SKIP LOCKED
    """,
}
_LEFT = {
    "params": "SELECT key FROM engine_instance WHERE key = ANY (%(keys)s) AND key <> ALL (%(done)s)",
    "output": """
    SELECT key FROM engine_instance WHERE key = ANY (%(keys)s) AND key <> ALL (%(done)s) AND status = 'complete'
    """,
}

# A statement of its own, which reads the rows as they are after they were locked.
_FILL = """
INSERT INTO engine_searchvalue (instance_id, path_id, text, number)
SELECT i.key, p.key, found.text, found.number
FROM engine_instance i CROSS JOIN engine_indexedpath p
CROSS JOIN LATERAL engine_search_value(
    CASE %(source)s WHEN 'output' THEN i.output ELSE i.params END, p.path
) AS found
WHERE i.key = ANY (%(keys)s) AND p.key = ANY (%(paths)s) AND split_part(p.path, '.', 1) = %(source)s
ORDER BY i.key, p.key
ON CONFLICT (instance_id, path_id) DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class Progress:
    """How many instances of a workflow this run has read so far."""

    workflow: str
    read: int


def fill(workflow: str, paths: Sequence[IndexedPath]) -> Iterator[Progress | Waiting]:
    """Fill the incomplete paths of a workflow and mark them complete; report after each batch.

    To be called outside of a transaction.
    """
    incomplete = [one for one in paths if not one.is_complete]
    if incomplete:
        yield from writers.wait()
        yield from _Filling(workflow, incomplete).run()


class _Filling:
    def __init__(self, workflow: str, paths: Sequence[IndexedPath]) -> None:
        self._workflow = workflow
        self._paths = [one.key for one in paths]
        self._after = min(one.filled_to for one in paths)
        self._batch = FIRST_BATCH
        self._read = 0

    def run(self) -> Iterator[Progress]:
        # What starts from now on is indexed by the trigger.
        last = _first("SELECT max(key) FROM engine_instance") or 0
        while keys := self._page(last):
            began = time.monotonic()
            for source in _LOCKS:
                self._fill(source, keys)
            self._remember(filled_to=keys[-1])
            self._resize(time.monotonic() - began)
            self._read += len(keys)
            yield Progress(self._workflow, self._read)
        self._remember(filled_to=last, is_complete=True)

    def _page(self, last: int) -> list[int]:
        statuses = [str(status) for status in InstanceStatus]
        values = {"workflow": self._workflow, "after": self._after, "last": last, "limit": self._batch}
        return _ask(_PAGE, statuses=statuses, **values)

    def _fill(self, source: str, keys: list[int]) -> None:
        while keys:
            with transaction.atomic():
                paths = _ask(_DECLARED, paths=self._paths)
                done = _ask(_LOCKS[source], keys=keys)
                _do(_FILL, source=source, keys=done, paths=paths)
            keys = _ask(_LEFT[source], keys=keys, done=done)
            if keys:
                time.sleep(AGAIN_SECONDS)

    def _remember(self, filled_to: int, **values: bool) -> None:
        self._after = filled_to
        IndexedPath.objects.filter(key__in=self._paths, is_declared=True, is_complete=False).update(
            filled_to=filled_to, **values
        )

    def _resize(self, seconds: float) -> None:
        self._batch = (
            max(self._batch // 2, 1) if seconds > LONG_SECONDS else min(self._batch * 2, MOST_AT_ONCE)
        )


def _ask(statement: str, **values: Any) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return [key for (key,) in cursor.fetchall()]


def _do(statement: str, **values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def _first(statement: str) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        (found,) = cursor.fetchone()
    return None if found is None else int(found)
