"""Find out when no transaction is left that has written an instance before a path was added or removed.

Its triggers have seen the paths as they were then. It holds a lock on the table until it ends, and nobody else can see
the instance until then. What writes later has seen the change, because the engine expects READ COMMITTED: in a
REPEATABLE READ transaction that was open before, the triggers would still see the paths as they were.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from django.db import connection

LOOK_SECONDS = 0.05

# Virtual ids of transactions, which are not used again. The prepared ones are included.
_WRITERS = """
SELECT DISTINCT virtualtransaction FROM pg_locks
WHERE locktype = 'relation' AND relation = 'engine_instance'::regclass AND mode = 'RowExclusiveLock' AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND pid IS DISTINCT FROM pg_backend_pid()
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many transactions are still open that were open when the change was committed."""

    transactions: int


def wait() -> Iterator[Waiting]:
    """Wait until none of the transactions is left that are open now; say how many are, many times a second.

    To be called after the change was committed.
    """
    left = _writers()
    while left:
        yield Waiting(len(left))
        time.sleep(LOOK_SECONDS)
        left &= _writers()


def _writers() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(_WRITERS)
        return {name for (name,) in cursor.fetchall()}
