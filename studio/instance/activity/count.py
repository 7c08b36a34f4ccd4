"""The number of entries of an instance, as far as a tab shows it."""

from __future__ import annotations

from django.db import connection

from engine.models import Instance
from engine.values.identity import REQUEST_TYPE
from engine.values.states import Action
from studio.display.at_least import counted

MOST = 100

# Each part stops at the limit: what has a hundred entries costs as much as what has a million. The audit trail is last:
# only there are rows passed over, and only what the others do not fill is looked for.
_COUNT = """
SELECT count(*) FROM (
    (SELECT 1 FROM engine_event WHERE instance_id = %(key)s AND NOT starts_with(type, %(request)s) LIMIT %(most)s)
    UNION ALL
    (SELECT 1 FROM engine_attempt WHERE instance_id = %(key)s LIMIT %(most)s)
    UNION ALL
    (SELECT 1 FROM engine_log WHERE instance_id = %(key)s LIMIT %(most)s)
    UNION ALL
    (SELECT 1 FROM engine_audit WHERE instance_key = %(key)s
       AND NOT (verb = %(sent)s AND outcome = 'done' AND reason = '') LIMIT %(most)s)
    LIMIT %(most)s) AS counted
"""


def count_entries(instance: Instance) -> int:
    """Count the entries of all generations, up to the limit."""
    values: dict[str, int | str] = {
        "key": instance.key,
        "sent": str(Action.SEND_EVENT),
        "request": REQUEST_TYPE,
        "most": MOST,
    }
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, values)
        (count,) = cursor.fetchone()
    return counted(int(count), MOST)
