"""The statements that read what fails now. Each ends after so many rows of an index, whatever the tables hold."""

from __future__ import annotations

from engine.status.failures import sql

# Of everything: by the index of what failed, the newest of each workflow. Where there are more than that, each group is
# counted by itself, from the index of the groups: a flood of one error must not hide another.
_ERRORED = """
    SELECT name.workflow, coalesce(i.fingerprint, '') AS fingerprint, count(*) AS n, min(i.finished_at) AS since,
        count(*) FILTER (WHERE i.finished_at > %(hour)s) AS in_hour, max(i.key) AS newest,
        max(i.finished_at) AS last_at, count(*) FILTER (WHERE i.rollback = 'failed') AS stuck,
        min(i.finished_at) FILTER (WHERE i.rollback = 'failed') AS stuck_since,
        count(*) FILTER (WHERE i.rollback = 'failed' AND i.finished_at > %(hour)s) AS stuck_in_hour,
        max(i.key) FILTER (WHERE i.rollback = 'failed') AS newest_stuck
    FROM unnest(%(workflows)s::text[]) AS name(workflow) CROSS JOIN LATERAL (
        SELECT i.key, i.fingerprint, i.rollback, i.finished_at FROM engine_instance i
        WHERE i.workflow = name.workflow AND i.status = 'errored' AND i.finished_at > %(since)s
        ORDER BY i.finished_at DESC LIMIT %(looked_at)s
    ) AS i
    GROUP BY 1, 2
"""
_OF_GROUPS = """
    SELECT f.workflow, f.fingerprint, counted.*, coalesce(e.stuck, 0), e.stuck_since, coalesce(e.stuck_in_hour, 0),
        e.newest_stuck
    FROM engine_failure f CROSS JOIN LATERAL (
        SELECT count(*) AS n, CASE WHEN count(*) < %(cap)s THEN min(finished_at) ELSE (
            SELECT i.finished_at FROM engine_instance i
            WHERE i.fingerprint = f.fingerprint AND i.status = 'errored' AND i.finished_at > %(since)s
            ORDER BY i.finished_at LIMIT 1
        ) END AS since, count(*) FILTER (WHERE finished_at > %(hour)s) AS in_hour, max(key) AS newest,
            max(finished_at) AS last_at
        FROM (
            SELECT i.finished_at, i.key FROM engine_instance i
            WHERE i.fingerprint = f.fingerprint AND i.status = 'errored' AND i.finished_at > %(since)s
            ORDER BY i.finished_at DESC LIMIT %(cap)s
        ) AS capped
    ) AS counted
    LEFT JOIN newest e ON e.workflow = f.workflow AND e.fingerprint = f.fingerprint
    WHERE f.workflow IN (SELECT workflow FROM flooded) AND counted.n > 0
"""
_WAITING = """
    FROM unnest(%(workflows)s::text[]) AS name(workflow) CROSS JOIN LATERAL (
        SELECT i.key, i.fingerprint, i.started_by, i.wake_at FROM engine_instance i
        WHERE i.workflow = name.workflow AND i.status = 'waiting' AND i.waiting_for = 'retry'
        ORDER BY i.key DESC LIMIT %(cap)s
    ) AS i
"""
_OF_PERSON = "WHERE (%(person)s::text IS NULL OR i.started_by = %(person)s)"
_RETRYING = f"""
    SELECT name.workflow, coalesce(i.fingerprint, '') AS fingerprint, count(*) AS n, min(i.wake_at) AS next_at,
        max(i.key) AS newest
    {_WAITING} {_OF_PERSON} GROUP BY 1, 2
"""
# A look at the end of an index tells whether a group failed lately; when it did so last is read of what is shown. Times
# are read as texts: Django takes ten times as long to make a time of each of a thousand.
CURRENT = f"""
    WITH newest AS MATERIALIZED ({_ERRORED}), flooded AS MATERIALIZED (
        SELECT workflow FROM newest GROUP BY workflow HAVING sum(n) >= %(looked_at)s
    ), errored AS MATERIALIZED (
        SELECT * FROM newest WHERE fingerprint = '' OR workflow NOT IN (SELECT workflow FROM flooded)
        UNION ALL {_OF_GROUPS}
    ), retrying AS MATERIALIZED ({_RETRYING}), decided AS MATERIALIZED (
        SELECT fingerprint, state FROM ({sql.STATED} AND f.decision <> '') AS stated
    )
    SELECT workflow, fingerprint, f.kin, f.step, f.phase, f.type, f.first_seen > %(since)s,
        coalesce(e.last_at > %(lately)s, false) OR EXISTS (
            SELECT FROM engine_attempt a WHERE a.fingerprint = f.fingerprint AND a.failed_at > %(lately)s
        ),
        least(coalesce(e.n, 0), %(cap)s), e.since::text, e.in_hour, e.newest,
        e.stuck, e.stuck_since::text, e.stuck_in_hour, e.newest_stuck, r.n, r.next_at::text, r.newest
    FROM errored e FULL JOIN retrying r USING (workflow, fingerprint)
    LEFT JOIN engine_failure f USING (workflow, fingerprint)
    WHERE fingerprint = '' OR f.fingerprint IS NOT NULL AND NOT EXISTS (
        SELECT FROM decided d WHERE d.fingerprint = f.fingerprint AND d.state <> 'open'
    )
    ORDER BY fingerprint = '' DESC, coalesce(e.n, 0) + coalesce(r.n, 0) DESC, fingerprint LIMIT %(most)s
"""  # noqa: S608

# What a person has started, among the newest of each workflow.
ERRORED_OF_PERSON = """
    SELECT name.workflow, coalesce(i.fingerprint, ''), i.rollback = 'failed', count(*), min(i.finished_at),
        count(*) FILTER (WHERE i.finished_at > %(hour)s), max(i.key)
    FROM unnest(%(workflows)s::text[]) AS name(workflow) CROSS JOIN LATERAL (
        SELECT i.key, i.fingerprint, i.started_by, i.rollback, i.finished_at FROM engine_instance i
        WHERE i.workflow = name.workflow AND i.status = 'errored' AND i.finished_at > %(since)s
        ORDER BY i.finished_at DESC LIMIT %(cap)s
    ) AS i
    WHERE i.started_by = %(person)s GROUP BY 1, 2, 3
"""
RETRYING_OF_PERSON = _RETRYING

SOONEST = f"""
    SELECT coalesce(i.fingerprint, ''), name.workflow, (array_agg(i.key ORDER BY i.wake_at, i.key))[1:%(soonest)s]
    {_WAITING} {_OF_PERSON} AND (name.workflow, coalesce(i.fingerprint, '')) IN (
        SELECT * FROM unnest(%(of)s::text[], %(fingerprints)s::text[])
    ) GROUP BY 1, 2
"""  # noqa: S608
LAST_SEEN = f"""
    SELECT f.fingerprint, last.last_seen FROM engine_failure f CROSS JOIN LATERAL ({sql.LAST}) AS last
    WHERE f.fingerprint = ANY (%(fingerprints)s)
"""  # noqa: S608
