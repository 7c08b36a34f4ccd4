"""Find out when no transaction is left that has written an instance before a path was added or removed.

Its triggers have seen the paths as they were then. It holds a lock on the table until it ends, and nobody else can see
the instance until then. What began later has seen the change, unless it is a REPEATABLE READ transaction that was open
before: the engine does not support this level.
"""

from __future__ import annotations

from django.db import connection

# Virtual ids of transactions, which are not used again. The prepared ones are included.
_WRITERS = """
SELECT DISTINCT virtualtransaction FROM pg_locks
WHERE locktype = 'relation' AND relation = 'engine_instance'::regclass AND mode = 'RowExclusiveLock' AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND pid IS DISTINCT FROM pg_backend_pid()
"""


class Writers:
    """The transactions that were open when this object was made, after the change was committed."""

    def __init__(self) -> None:
        self._open = _writers()

    def left(self) -> int:
        """Return how many of them are still open."""
        if self._open:
            self._open &= _writers()
        return len(self._open)


def _writers() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(_WRITERS)
        return {name for (name,) in cursor.fetchall()}
