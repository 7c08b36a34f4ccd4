"""Keep the source of the workflows that workers run, a row for each version, and delete rows that are of no more use.

A worker runs `keep` after its start and every few minutes, the front worker runs `purge` every hour
(`engine.worker.periodic`). Several workers may do so at once: each statement writes one row, or waits for none.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import connection

from engine.declare.kept_source import KeptSource, kept_source
from engine.declare.registry import Workflow, workflows
from engine.steer.clock import database_time
from engine.values.files import shown_file
from engine.values.states import InstanceStatus

MOST = 200  # versions of a workflow
SEEN_AGAIN = "1 day"
# For which a web process of a version may go on starting instances after the last worker of that version was seen.
OUTLIVES = "7 days"

# What is new, and what was last seen long ago.
_DUE = f"""
    SELECT mine.workflow, c.code IS NULL
    FROM unnest(%(workflows)s::text[], %(codes)s::text[]) AS mine (workflow, code)
    LEFT JOIN engine_code c ON c.workflow = mine.workflow AND c.code = mine.code
    WHERE c.code IS NULL OR c.last_seen_at < %(now)s - interval '{SEEN_AGAIN}'
    ORDER BY 1
"""  # noqa: S608

_ADD = """
    INSERT INTO engine_code (workflow, code, file, function, line, text, first_seen_at, last_seen_at)
    VALUES (%(workflow)s, %(code)s, %(file)s, %(function)s, %(line)s, %(text)s, %(now)s, %(now)s)
    ON CONFLICT (workflow, code) DO NOTHING
"""

_SEE = """
    UPDATE engine_code SET last_seen_at = %(now)s
    WHERE workflow = %(workflow)s AND code = %(code)s AND last_seen_at < %(now)s
"""

# An instance that refers to a version was there when that version was in use. So there is none if the workflow's oldest
# instance is younger: found at one end of the index of the lists for each status, where a search for the version would
# read all instances. Row comparisons, as in the other readers of that index.
_PURGE = f"""
    WITH old AS MATERIALIZED (
        SELECT workflow, code, last_seen_at + interval '{OUTLIVES}' AS over_at,
               row_number() OVER (PARTITION BY workflow ORDER BY last_seen_at DESC, code) AS place
        FROM engine_code
    ), oldest AS MATERIALIZED (
        SELECT w.workflow, min(first.created_at) AS at
        FROM (SELECT DISTINCT workflow FROM old WHERE over_at < %(now)s) AS w
        CROSS JOIN unnest(%(statuses)s::text[]) AS state(status)
        CROSS JOIN LATERAL (
            SELECT i.created_at FROM engine_instance i
            WHERE (i.workflow, i.status) >= (w.workflow, state.status)
              AND (i.workflow, i.status) <= (w.workflow, state.status)
            ORDER BY i.workflow DESC, i.status DESC, i.key LIMIT 1
        ) AS first
        GROUP BY w.workflow
    ), over AS (
        SELECT c.workflow, c.code FROM engine_code c JOIN old USING (workflow, code)
        WHERE old.place > %(most)s
           OR old.over_at < %(now)s
              AND NOT EXISTS (SELECT FROM oldest o WHERE o.workflow = old.workflow AND o.at <= old.over_at)
        ORDER BY c.workflow, c.code FOR UPDATE OF c SKIP LOCKED
    )
    DELETE FROM engine_code c USING over WHERE c.workflow = over.workflow AND c.code = over.code
"""  # noqa: S608


def keep(*, now: datetime | None = None) -> int:
    """Keep the source of each workflow that this process has and nobody has kept. Return how many were new.

    Most often that is one query. A handler without a source file, or whose file has changed since it was loaded, has
    no row. `now` is by default the database's time.
    """
    at = now or database_time()
    mine = sorted(workflows.items())
    codes = [one.fingerprint for _, one in mine]
    with connection.cursor() as cursor:
        cursor.execute(_DUE, {"workflows": [name for name, _ in mine], "codes": codes, "now": at})
        due = list(cursor.fetchall())
        return sum(_keep(cursor, workflows[name], at, is_new=is_new) for name, is_new in due)


def _keep(cursor: Any, workflow: Workflow[Any, Any], at: datetime, *, is_new: bool) -> int:
    values: dict[str, Any] = {"workflow": workflow.name, "code": workflow.fingerprint, "now": at}
    if not is_new:
        cursor.execute(_SEE, values)
        return 0
    kept = kept_source(workflow.handler, workflow.fingerprint)
    if kept is None:
        return 0
    cursor.execute(_ADD, {**values, **_columns(workflow, kept)})
    return int(cursor.rowcount)


def _columns(workflow: Workflow[Any, Any], kept: KeptSource) -> dict[str, object]:
    file = shown_file(workflow.source[0])
    return {"file": file, "function": kept.function, "line": kept.line, "text": kept.text}


def purge(*, now: datetime | None = None) -> int:
    """Delete versions that no worker has had for a week and no instance can refer to; of each workflow, also those
    beyond the newest 200. Return their number.
    """
    statuses = [str(one) for one in InstanceStatus]
    values: dict[str, Any] = {"now": now or database_time(), "most": MOST, "statuses": statuses}
    with connection.cursor() as cursor:
        cursor.execute(_PURGE, values)
        return int(cursor.rowcount)
