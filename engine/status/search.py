"""Search instances without reading all of them."""

from __future__ import annotations

from django.db import connection
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Lower
from django.db.models.lookups import StartsWith

from engine.declare.registry import workflows
from engine.models import Instance

# Up to this many IDs with the same prefix are read first. If there are more, the newest are found soon in any order.
MOST_ALIKE = 10_000

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


def workflow_names() -> list[str]:
    """Return the names of the workflows in the code and of those that only exist in the database."""
    with connection.cursor() as cursor:
        cursor.execute(_RECORDED)
        recorded = {row[0] for row in cursor.fetchall()}
    return sorted(recorded | set(workflows))


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


def keys_alike(q: str) -> list[int] | None:
    """Return the keys of all instances whose ID begins with this text; None if there are too many to list."""
    found = Instance.objects.filter(id_begins(q)).order_by().values_list("key", flat=True)
    keys = list(found[: MOST_ALIKE + 1])
    return keys if len(keys) <= MOST_ALIKE else None
