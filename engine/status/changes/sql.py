"""The queries over all rows of an instance, with the transaction that wrote each."""

from __future__ import annotations

from engine.status.changes.kinds import RANKS, Kind

LAST = 2**62  # the time of the instance among those of its rows, in microseconds


def _rows(kind: Kind, table: str, at: str, place: str, owner: str = "instance_id") -> str:
    return (
        f"SELECT {RANKS[kind]} AS rank, {at} AS at, {place}, r.xmin::text::bigint AS xmin "
        f"FROM {table} r WHERE r.{owner} = %(key)s"
    )


# A generation ends when the next one begins, which may be long after it has finished.
_BEGAN_NEXT = """
    coalesce((
        SELECT min(a.at) FROM engine_audit a
        WHERE a.instance_key = r.instance_id AND a.verb = 'restart' AND a.outcome = 'done'
          AND a.data->>'generation' = (r.number + 1)::text
    ), r.finished_at, r.started_at, 'epoch')"""

_TABLES = "\n    UNION ALL ".join(
    (
        _rows(
            Kind.GENERATION,
            "engine_generation",
            _BEGAN_NEXT,
            "r.number AS generation, 0::bigint AS a, 0::bigint AS b",
        ),
        _rows(Kind.ACTION, "engine_audit", "r.at", "0, r.key, 0", "instance_key"),
        _rows(Kind.EVENT, "engine_event", "r.received_at", "0, r.key, 0"),
        _rows(Kind.STEP, "engine_step", "r.started_at", "r.generation, r.seq, 0"),
        _rows(
            Kind.ATTEMPT,
            "engine_attempt",
            "r.started_at",
            "r.generation, r.step_seq, r.number * 2 + (r.phase = 'rollback')::int",
        ),
        _rows(Kind.LOG, "engine_log", "r.at", "r.generation, r.key, 0"),
        _rows(Kind.INSTANCE, "engine_instance", "'infinity'::timestamptz", "0, 0, 0", "key"),
    )
)

# `xmin` has 32 bits and starts again after four billion transactions; with the snapshot's 64 bits it gets its full
# number, `xid`. A row that is older than that, which PostgreSQL has frozen, gets the number of a later transaction. It
# may be found again then, but none is missed. Numbers below 3 are those of rows that are visible to everybody.
ROWS = f"""
WITH cut AS MATERIALIZED (
    SELECT pg_snapshot_xmin(s)::text::bigint AS low, pg_snapshot_xmax(s)::text::bigint AS top
    FROM pg_current_snapshot() AS s
), found AS (
    SELECT rank, at, generation, a, b, xmin,
        CASE WHEN xmin < 3 THEN 0 ELSE top - ((top - xmin) & 4294967295) END AS xid
    FROM cut CROSS JOIN (
    {_TABLES}
    ) AS every
)"""


def is_seen(mark: str) -> str:
    """Return the condition that a reader at a mark has seen a row."""
    return f"(xid < %({mark}_xmin)s OR xid = ANY (%({mark}_seen)s::bigint[]))"


LOOK = f"""{ROWS}
SELECT cut.low, array_agg(DISTINCT xid) FILTER (WHERE xid >= cut.low),
    bool_or(rank = {RANKS[Kind.INSTANCE]}), bool_or(NOT {is_seen("since")})
FROM cut LEFT JOIN found ON true GROUP BY cut.low
"""
# Times become numbers only for the rows that are returned. The instance comes last.
PAGE = f"""{ROWS}, place AS MATERIALIZED (
    SELECT CASE WHEN %(at)s::bigint >= {LAST} THEN 'infinity'
        ELSE timestamptz 'epoch' + %(at)s::bigint * interval '1 microsecond' END AS starts
), page AS (
    SELECT at, rank, generation, a, b FROM found, place
    WHERE NOT {is_seen("since")} AND {is_seen("until")} AND rank = ANY (%(ranks)s) AND at >= starts
      AND (at, rank, generation, a, b) > (starts, %(rank)s, %(generation)s, %(a)s, %(b)s)
    ORDER BY at, rank, generation, a, b LIMIT %(limit)s
)
SELECT CASE WHEN at = 'infinity' THEN {LAST} ELSE (extract(epoch FROM at) * 1000000)::bigint END,
    rank, generation, a, b
FROM page ORDER BY at, rank, generation, a, b
"""
STATE = f"""{ROWS}
SELECT (SELECT top FROM cut), (SELECT {is_seen("until")} FROM found WHERE rank = {RANKS[Kind.INSTANCE]})
"""
