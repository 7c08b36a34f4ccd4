"""Whether what failed has succeeded since."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from engine.status.failures import sql

MOST = 100  # that are counted
LOOKED_AT = 200  # instances of a workflow in each status

# Those whose latest failure was of these groups, and the newest of their workflows in each status. Of the former, what
# ended before the last failure is left to the index: of a large group, the planner would read and sort every row.
_CANDIDATES = """
    SELECT i.key, i.generation, i.status, i.finished_at FROM engine_instance i
    WHERE i.workflow = f.workflow AND i.status = statuses.status ORDER BY i.key DESC LIMIT %(looked_at)s
"""
_WENT_ON = """
    SELECT i.key, i.generation, i.status, i.finished_at FROM engine_instance i
    WHERE i.fingerprint = f.fingerprint AND i.status = statuses.status AND i.finished_at >= last.at
    ORDER BY i.finished_at DESC LIMIT 200
"""
_GOES_ON = """
    SELECT i.key, i.generation, i.status, i.finished_at FROM engine_instance i
    WHERE i.fingerprint = f.fingerprint AND i.status = statuses.status AND i.finished_at IS NULL LIMIT 200
"""
_RECOVERED = f"""
    WITH last AS MATERIALIZED (
        SELECT max(last.last_seen) AS at FROM engine_failure f CROSS JOIN LATERAL ({sql.LAST}) AS last
        WHERE f.fingerprint = ANY (%(fingerprints)s)
    ), candidates AS MATERIALIZED (
        SELECT DISTINCT f.step, f.phase, f.of_attempts, found.*
        FROM engine_failure f CROSS JOIN last
        CROSS JOIN unnest(ARRAY['complete', 'running', 'waiting', 'errored', 'terminated']) AS statuses (status)
        CROSS JOIN LATERAL (({_CANDIDATES}) UNION ALL ({_WENT_ON}) UNION ALL ({_GOES_ON})) AS found
        WHERE f.fingerprint = ANY (%(fingerprints)s)
    ), done AS (
        SELECT FROM candidates i JOIN engine_step s
            ON s.instance_id = i.key AND s.generation = i.generation AND s.name = i.step
        JOIN engine_attempt a
            ON a.instance_id = i.key AND a.generation = i.generation AND a.step_seq = s.seq AND a.phase = i.phase
        CROSS JOIN last
        WHERE i.of_attempts AND (i.finished_at IS NULL OR i.finished_at >= last.at)
          AND a.status = 'complete' AND a.finished_at > last.at
        UNION ALL
        SELECT FROM candidates i CROSS JOIN last
        WHERE NOT i.of_attempts AND i.status = 'complete' AND i.finished_at > last.at
        LIMIT %(most)s
    )
    SELECT (SELECT count(*) FROM done), last.at FROM last
"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Recovered:
    """How often the step of a group has succeeded since its last failure."""

    count: int
    """Attempts that succeeded, counted up to 100; instances, if the handler itself failed."""
    since: datetime
    """When it failed last."""


def recovered(
    fingerprints: Collection[str], *, most: int = MOST, looked_at: int = LOOKED_AT
) -> Recovered | None:
    """Return how often the step has succeeded since the last failure, counted up to `most`; None if it has not.

    Only the newest instances of the workflows are looked at, so many in each status, and those that went on after such
    a failure.
    """
    values: dict[str, Any] = {"fingerprints": [*fingerprints], "most": most, "looked_at": looked_at}
    with connection.cursor() as cursor:
        cursor.execute(_RECOVERED, values)
        count, since = cursor.fetchone()
    return Recovered(count, since) if count else None
