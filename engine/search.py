"""Find instances by what people know of them, without reading all there are."""

from __future__ import annotations

from django.db import connection
from django.db.models import Q

from engine.models import Instance
from engine.registry import workflows

SEARCH_WINDOW = 100_000

# The names in use, each found by one step down the index (workflow, …): DISTINCT would read every row.
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
    """Give the names of the workflows in the code and of those that only the record still knows."""
    with connection.cursor() as cursor:
        cursor.execute(_RECORDED)
        recorded = {row[0] for row in cursor.fetchall()}
    return sorted(recorded | set(workflows))


def id_like(q: str) -> Q:
    """Match an id, or the beginning of one."""
    # The exact id is found through its unique index, however old; a beginning only among the newest.
    newest = Instance.objects.order_by("-key").values_list("key", flat=True).first() or 0
    return Q(workflow__in=workflow_names(), id=q) | Q(key__gt=newest - SEARCH_WINDOW, id__startswith=q)
