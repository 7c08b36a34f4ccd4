"""The statements that read groups of failures. None reads more of the history than the hours not yet counted.

last   when a group failed last: one look at the end of an index; after its instances were deleted, the last hour with
       a count.
since  how many failures there were after it was ignored, counted no further than it matters.
"""

from __future__ import annotations

from engine.values.system import NOT_SYSTEM

COLUMNS = (
    "fingerprint, kin, workflow, step, phase, type, message, sample, frame, first_seen, last_seen, state, decided_by, "
    "decided_at, reason, ignored_until, ignored_count"
)

LAST = """
    SELECT greatest(f.first_seen, (
        SELECT max(c.hour) FROM engine_failure_count c WHERE c.fingerprint = f.fingerprint
    ), CASE WHEN f.of_attempts THEN (
        SELECT max(a.failed_at) FROM engine_attempt a WHERE a.fingerprint = f.fingerprint
    ) ELSE (
        SELECT max(i.finished_at) FROM engine_instance i
        WHERE i.fingerprint = f.fingerprint AND i.status = 'errored'
    ) END) AS last_seen
"""
_SINCE = """
    SELECT CASE WHEN f.of_attempts THEN (
        SELECT count(*) FROM (
            SELECT FROM engine_attempt a WHERE a.fingerprint = f.fingerprint AND a.failed_at > f.decided_at
            LIMIT f.ignored_count
        ) AS counted
    ) ELSE (
        SELECT count(*) FROM (
            SELECT FROM engine_instance i
            WHERE i.fingerprint = f.fingerprint AND i.status = 'errored' AND i.finished_at > f.decided_at
            LIMIT f.ignored_count
        ) AS counted
    ) END AS since
    WHERE f.decision = 'ignored' AND f.ignored_count IS NOT NULL
"""
_STATE = """
    SELECT CASE
        WHEN f.decision = 'resolved' AND last.last_seen <= f.decided_at THEN 'resolved'
        WHEN f.decision = 'ignored' AND (f.ignored_until IS NULL OR f.ignored_until > clock_timestamp())
            AND (f.ignored_count IS NULL OR later.since < f.ignored_count) THEN 'ignored'
        ELSE 'open'
    END AS state
"""
STATED = f"""
    SELECT f.*, last.last_seen, stated.state
    FROM engine_failure f
    CROSS JOIN LATERAL ({LAST}) AS last
    LEFT JOIN LATERAL ({_SINCE}) AS later ON true
    CROSS JOIN LATERAL ({_STATE}) AS stated
    WHERE f.{NOT_SYSTEM} AND (%(workflows)s::text[] IS NULL OR f.workflow = ANY (%(workflows)s))
"""  # noqa: S608

# The latest message, asked for the groups that are shown. The error of a parent quotes its child, whose workflow one
# may not be allowed to see, or whose step is sensitive: of such a group, the message without the child's is shown.
LATEST = """CASE WHEN f.sample = '' OR f.type = 'ChildWorkflowError' THEN f.sample
    ELSE coalesce(left(CASE WHEN f.of_attempts THEN (
        SELECT a.error ->> 'message' FROM engine_attempt a WHERE a.fingerprint = f.fingerprint
        ORDER BY a.failed_at DESC, a.number DESC LIMIT 1
    ) ELSE (
        SELECT i.error ->> 'message' FROM engine_instance i
        WHERE i.fingerprint = f.fingerprint AND i.status = 'errored' ORDER BY i.finished_at DESC LIMIT 1
    ) END, 4000), f.sample) END"""
# Errored, waiting for a retry, and failed in 14 days. Asked for a page of groups only.
_FIGURES = f"""
    SELECT (
        SELECT count(*) FROM engine_instance i WHERE i.fingerprint = f.fingerprint AND i.status = 'errored'
    ) AS errored, (
        SELECT count(*) FROM engine_instance i
        WHERE i.fingerprint = f.fingerprint AND i.status = 'waiting' AND i.waiting_for = 'retry'
    ) AS retrying, (
        SELECT coalesce(sum(c.attempts), 0)::bigint FROM engine_failure_count c
        WHERE c.fingerprint = f.fingerprint AND c.hour < f.counted_to AND c.hour >= now() - interval '14 days'
    ) + CASE WHEN f.of_attempts THEN (
        SELECT count(*) FROM engine_attempt a
        WHERE a.fingerprint = f.fingerprint AND a.failed_at >= greatest(f.counted_to, now() - interval '14 days')
    ) ELSE (
        SELECT count(*) FROM engine_instance i
        WHERE i.fingerprint = f.fingerprint AND i.status = 'errored'
          AND i.finished_at >= greatest(f.counted_to, now() - interval '14 days')
    ) END AS attempts, {LATEST} AS latest
"""  # noqa: S608
_SHOWN = f"""
    SELECT {COLUMNS.replace("sample", "figures.latest")}, figures.errored, figures.retrying, figures.attempts
    FROM page f CROSS JOIN LATERAL ({_FIGURES}) AS figures
"""  # noqa: S608

PAGE = f"""
    WITH stated AS MATERIALIZED ({STATED}
        AND (%(workflow)s = '' OR f.workflow = %(workflow)s)
        AND (%(query)s = '' OR f.fingerprint = %(query)s OR position(%(query)s IN lower(
            concat_ws(E'\\n', f.workflow, f.step, f.type, f.message, f.frame)
        )) > 0)
    ), page AS MATERIALIZED (
        SELECT * FROM stated
        WHERE (%(state)s = '' OR state = %(state)s)
          AND (%(after_seen)s::timestamptz IS NULL
               OR (last_seen, fingerprint) < (%(after_seen)s::timestamptz, %(after)s))
        ORDER BY last_seen DESC, fingerprint DESC LIMIT %(limit)s
    )
    {_SHOWN} ORDER BY last_seen DESC, fingerprint DESC
"""  # noqa: S608
ONE = f"WITH page AS MATERIALIZED ({STATED} AND f.fingerprint = %(fingerprint)s) {_SHOWN}"
KIN = f"""
    WITH page AS MATERIALIZED ({STATED}
        AND f.kin = (SELECT kin FROM engine_failure WHERE fingerprint = %(fingerprint)s)
    )
    {_SHOWN} ORDER BY figures.errored DESC, last_seen DESC, fingerprint
"""  # noqa: S608
# Those about which nothing was decided are open, whenever they failed.
COUNT_OPEN = f"""
    SELECT (
        SELECT count(*) FROM engine_failure f
        WHERE f.decision = '' AND f.{NOT_SYSTEM} AND (%(workflows)s::text[] IS NULL OR f.workflow = ANY (%(workflows)s))
    ) + (SELECT count(*) FROM ({STATED} AND f.decision <> '') AS stated WHERE state = 'open')
"""  # noqa: S608

COUNTS = """
    SELECT count(*) FILTER (WHERE status = 'errored'),
        count(*) FILTER (WHERE status = 'waiting' AND waiting_for = 'retry'),
        count(*) FILTER (WHERE status = 'paused'),
        count(*) FILTER (WHERE status NOT IN ('errored', 'paused') AND (status, waiting_for) <> ('waiting', 'retry'))
    FROM engine_instance WHERE fingerprint = ANY (%(fingerprints)s)
"""
# Sorted by an expression: along the primary key, the planner would read all instances to find that none went on.
KEYS = """
    SELECT key FROM engine_instance
    WHERE fingerprint = ANY (%(fingerprints)s) AND [which] AND (%(after)s::bigint IS NULL OR key < %(after)s)
    ORDER BY key + 0 DESC LIMIT %(limit)s
"""
WHICH = {
    "errored": "status = 'errored'",
    "retrying": "status = 'waiting' AND waiting_for = 'retry'",
    "paused": "status = 'paused'",
    "went_on": "status NOT IN ('errored', 'paused') AND (status, waiting_for) <> ('waiting', 'retry')",
}

NEWEST_ATTEMPT = """
    SELECT i.workflow, i.key, i.id, a.generation, a.step_seq, a.phase, a.number,
        (CASE a.phase WHEN 'do' THEN s.options ELSE s.options -> 'rollback' END ->> 'max_attempts')::int,
        a.failed_at, a.error::text
    FROM unnest(%(fingerprints)s::text[]) AS f (fingerprint)
    CROSS JOIN LATERAL (
        SELECT * FROM engine_attempt a WHERE a.fingerprint = f.fingerprint
        ORDER BY a.failed_at DESC, a.number DESC, a.instance_id DESC LIMIT 1
    ) AS a
    JOIN engine_instance i ON i.key = a.instance_id
    LEFT JOIN engine_step s ON s.instance_id = a.instance_id AND s.generation = a.generation AND s.seq = a.step_seq
    ORDER BY a.failed_at DESC LIMIT 1
"""
NEWEST_END = """
    SELECT i.workflow, i.key, i.id, i.generation, NULL, 'do', NULL, NULL, i.finished_at, i.error::text
    FROM unnest(%(fingerprints)s::text[]) AS f (fingerprint)
    CROSS JOIN LATERAL (
        SELECT * FROM engine_instance i WHERE i.fingerprint = f.fingerprint AND i.status = 'errored'
        ORDER BY i.finished_at DESC LIMIT 1
    ) AS i
    ORDER BY i.finished_at DESC LIMIT 1
"""
