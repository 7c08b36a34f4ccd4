"""Search instances without reading all of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Model, Q, QuerySet, Value
from django.db.models.functions import Collate, Lower
from django.db.models.lookups import StartsWith

from engine.declare.registry import workflows
from engine.models import Instance
from engine.values.states import InstanceStatus
from engine.values.system import is_system

# Up to this many IDs with the same prefix are read first. If there are more, the newest are found soon in any order.
MOST_ALIKE = 10_000
COUNTED = 10_000  # instances of a workflow and status
LONGEST_TRANSACTION = timedelta(hours=1)

# The names in use, each found by one descent of the index (workflow, …): DISTINCT would read every row.
_RECORDED = """
WITH RECURSIVE name AS (
    (SELECT workflow FROM engine_instance ORDER BY workflow LIMIT 1)
    UNION ALL
    SELECT (SELECT workflow FROM engine_instance WHERE workflow > name.workflow ORDER BY workflow LIMIT 1)
      FROM name WHERE name.workflow IS NOT NULL
)
SELECT workflow FROM name WHERE workflow IS NOT NULL
"""


# One descent of the index (workflow, status, …) for each pair.
_COUNTS = """
SELECT names.name, statuses.status, counted.n
  FROM unnest(%s::text[]) AS names (name) CROSS JOIN unnest(%s::text[]) AS statuses (status)
 CROSS JOIN LATERAL (
       SELECT count(*) AS n FROM (
              SELECT FROM engine_instance i WHERE i.workflow = names.name AND i.status = statuses.status LIMIT %s
       ) AS rows) AS counted
"""

_FIRST_KEY = """
WITH RECURSIVE halves(low, high) AS (
    SELECT coalesce(min(key), 1), coalesce(max(key), 0) + 1 FROM {table}
    UNION ALL
    SELECT CASE WHEN at IS NULL OR at >= wanted THEN low ELSE key + 1 END,
           CASE WHEN at IS NULL OR at >= wanted THEN middle ELSE high END
      FROM halves CROSS JOIN (SELECT %s::timestamptz AS wanted) AS given
     CROSS JOIN LATERAL (SELECT (low + high) / 2 AS middle) AS half
      LEFT JOIN LATERAL (
           SELECT key, {column} AS at FROM {table} WHERE key >= middle ORDER BY key LIMIT 1) AS next ON true
     WHERE low < high
)
SELECT low FROM halves WHERE low >= high
"""


def workflow_names(*, of_system: bool = False) -> list[str]:
    """Return the names of the workflows in the code and of those that only exist in the database.

    Those of Reprise itself are left out; with `of_system`, they are all that is returned.
    """
    with connection.cursor() as cursor:
        cursor.execute(_RECORDED)
        recorded = {row[0] for row in cursor.fetchall()}
    return sorted(name for name in recorded | set(workflows.served) if is_system(name) is of_system)


def counts_by_status(names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Count the instances of workflows by status, with one query.

    Each count stops at a limit: beyond it, "many" is enough, and counting a million rows takes too long.
    """
    found = {name: {str(status): 0 for status in InstanceStatus} for name in names}
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, [[*names], [str(status) for status in InstanceStatus], COUNTED])
        for name, status, count in cursor.fetchall():
            found[name][status] = count
    return found


def first_key(rows: type[Model], column: str, moment: datetime) -> int:
    """Return the first key at or after a time, by bisection: rows are almost in order of time, which has no index.

    The time of a row may be the start of its transaction, and its key is assigned when it is written: allow for
    LONGEST_TRANSACTION.
    """
    quote = connection.ops.quote_name
    statement = _FIRST_KEY.format(table=quote(rows._meta.db_table), column=quote(column))
    with connection.cursor() as cursor:
        cursor.execute(statement, [moment])
        (key,) = cursor.fetchone()
    return int(key)


def last_start_at() -> datetime | None:
    """Return when the newest instance was started."""
    return Instance.objects.of_users().order_by("-key").values_list("created_at", flat=True).first()


def id_begins(q: str) -> Q:
    """Return the condition for IDs that begin with this text, ignoring case."""
    # The database lowers both sides, so that they agree.
    return Q(StartsWith(Lower("id"), Lower(Value(q))))


def by_id(rows: QuerySet[Instance], q: str) -> QuerySet[Instance]:
    """Return the instances whose ID begins with this text, ignoring case, however old they are.

    Queries the index first. The planner does not know that the few matches may all be old, and would search for them
    from the newest instance on, past millions of others.
    """
    keys = keys_alike(q)
    return rows.filter(id_begins(q)) if keys is None else rows.filter(key__in=keys)


def is_beginning(q: str) -> bool:
    """Return whether the ID of an instance of a user's workflow begins with this text, ignoring case.

    In the order of the index: the planner expects many and would read the table until there is one.
    """
    rows = Instance.objects.of_users().filter(id_begins(q)).order_by(Collate(Lower("id"), "C"))
    return bool(rows.values_list("key")[:1])


def keys_alike(q: str) -> list[int] | None:
    """Return the keys of all instances whose ID begins with this text; None if there are too many to list."""
    found = Instance.objects.filter(id_begins(q)).order_by().values_list("key", flat=True)
    keys = list(found[: MOST_ALIKE + 1])
    return keys if len(keys) <= MOST_ALIKE else None
