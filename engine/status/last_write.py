"""Whether anything has been written since: what was read before is then still true."""

from __future__ import annotations

from django.db import connection

# A snapshot is the same only while no transaction that writes has ended, in any process: the numbers of the finished
# ones follow from its text. Numbers may repeat in another database, or in a server that was restored from a copy. The
# last two say whether this connection may see something else than others do: what it has written itself, or an old
# snapshot.
_NOW = """
SELECT concat_ws(' ', pg_current_snapshot(), current_database(), pg_postmaster_start_time()),
       pg_current_xact_id_if_assigned() IS NULL AND current_setting('transaction_isolation') = 'read committed'
"""


def last_write() -> str | None:
    """Return a text that changes whenever a transaction that has written something ends; None if it cannot be told.

    What is read after that is true for as long as the text is the same, for every process and every connection. The
    exception is what follows from the clock alone. It cannot be told inside of a transaction that has written.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NOW)
        text, is_known = cursor.fetchone()
    return str(text) if is_known else None
