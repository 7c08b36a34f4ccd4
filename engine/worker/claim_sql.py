"""The statements about workflows of which only so many instances may be held at a time (`max_running`).

Their limits come as parameters, from the code: `limited` names the workflows, `limits` are their numbers. Whoever
claims of such a workflow has its lock until the claim is committed, and counts after it has got it: the snapshot of
a statement shows what was committed before. So never more are held than the limit, whoever else claims.

What finds no place keeps its wake-up, and is passed by: with 10,000 of them these looks took 0.64 ms instead of 0.56,
and a claim as long as before (2 ms), on a busy machine.
"""

from __future__ import annotations

from engine.columns import microseconds, moment
from engine.worker.sql import SEAT_SPACE, TAKE

LOCK_SPACE = SEAT_SPACE + 2

# Who is held up between two statements of a claim, say by SIGSTOP, must not keep the others from the workflow.
PATIENCE = "5s"

LIMITED = "unnest(%(limited)s::text[], %(limits)s::integer[]) AS l(name, most)"

# Those that are held, by the index of the Studio's lists: whoever is held has one of these two statuses.
HELD = """
    LATERAL (
        SELECT count(*)::integer AS count, coalesce(bool_or(isolated), false) AS has_isolated FROM engine_instance
        WHERE workflow = l.name AND status IN ('running', 'waiting_for_pause')
    ) held
"""

# The places that are free, of those that count. One is kept for an instance that must run alone, if any is due and none
# has a place: wards take those, and would always come too late.
PLACES = f"""
    SELECT l.name, l.most - held.count AS alone, l.most - held.count - CASE WHEN held.has_isolated THEN 0 ELSE (
        SELECT count(*) FROM (
            SELECT FROM engine_instance
            WHERE workflow = l.name AND isolated AND owner IS NULL AND wake_at <= (SELECT clock_timestamp()) LIMIT 1
        ) AS suspect
    ) END AS free
    FROM {LIMITED} CROSS JOIN {HELD}
"""


# Where a claim would find something: first of all, and without the locks, because as a rule there is nothing. (The
# order is for the planner, which might read the table in search of any one.)
def _open(which: str, free: str) -> str:
    return f"""
    WITH places AS MATERIALIZED ({PLACES})
    SELECT name FROM places
    WHERE {free} > 0 AND (
        SELECT true FROM engine_instance i
        WHERE i.workflow = places.name AND i.wake_at <= (SELECT clock_timestamp()) AND i.owner IS NULL AND {which}
        ORDER BY i.wake_at LIMIT 1
    )
    """


OPEN = _open("NOT i.isolated", "free")
OPEN_ISOLATED = _open("i.isolated", "alone")

# The workflows whose lock is free, now this transaction's. Nobody waits: the other one takes what there is, and what
# it has not seen is found at the next try.
LOCK = f"""
    WITH locked AS MATERIALIZED (
        SELECT name FROM unnest(%(limited)s::text[]) AS l(name)
        WHERE pg_try_advisory_xact_lock({LOCK_SPACE}, hashtext(name))
    )
    SELECT name FROM locked
    WHERE set_config('idle_in_transaction_session_timeout', '{PATIENCE}', true) IS NOT NULL
"""


# Claim what is due of the workflows that are locked, as many as have a place: first those that have run before, then
# new ones, each oldest first, and of several workflows in turns. Nothing is taken before it is due, because it would
# keep a place for nothing.
def _claim(which: str, free: str) -> str:
    def due(began: str, most: str, late: str) -> str:
        return f"""
        SELECT d.key, d.wake_at, places.name FROM places CROSS JOIN LATERAL (
            SELECT key, wake_at FROM engine_instance i
            WHERE i.workflow = places.name
              AND i.wake_at <= (SELECT clock_timestamp() - %({late})s * interval '1 second') AND i.owner IS NULL
              AND {which} AND i.started_at IS {began}
            ORDER BY i.wake_at LIMIT greatest({most}, 0)
            FOR NO KEY UPDATE SKIP LOCKED
        ) d
        """

    rest = f"places.{free} - (SELECT count(*) FROM woken w WHERE w.name = places.name)"
    return f"""
    WITH places AS MATERIALIZED ({PLACES}), woken AS MATERIALIZED (
        {due("NOT NULL", f"places.{free}", "late")}
    ), fresh AS MATERIALIZED (
        {due("NULL", rest, "late_new")}
    ), due AS (
        SELECT key, wake_at FROM (
            SELECT key, wake_at, row_number() OVER (PARTITION BY name ORDER BY is_fresh, wake_at) AS turn
            FROM (SELECT *, false AS is_fresh FROM woken UNION ALL SELECT *, true FROM fresh) AS either
        ) AS in_turn
        ORDER BY turn, wake_at LIMIT %(limit)s
    )
    {TAKE}
    """


CLAIM = _claim("NOT i.isolated", "free")
CLAIM_ISOLATED = _claim("i.isolated", "alone")

# Say of what is due, where a locked workflow is full, that it waits for a place and no longer for its wake-up. From
# where the last look ended, and so many of each workflow: how far it went comes back.
HOLD_BACK = f"""
    WITH places AS MATERIALIZED ({PLACES}), due AS MATERIALIZED (
        SELECT places.name, d.key, d.status, d.wake_at FROM places
        JOIN unnest(%(limited)s::text[], %(since_us)s::bigint[]) AS looked(name, since_us) USING (name)
        CROSS JOIN LATERAL (
            SELECT key, status, wake_at FROM engine_instance i
            WHERE i.workflow = places.name AND i.wake_at > {moment("looked.since_us")}
              AND i.wake_at <= (SELECT clock_timestamp()) AND i.owner IS NULL AND i.started_at IS NOT NULL
            ORDER BY i.wake_at LIMIT %(limit)s
        ) d
        WHERE places.free <= 0
    ), sleeping AS (
        SELECT key FROM engine_instance
        WHERE key IN (SELECT key FROM due WHERE status = 'waiting')
          AND status = 'waiting' AND owner IS NULL AND wake_at <= clock_timestamp()
        ORDER BY key FOR NO KEY UPDATE SKIP LOCKED
    ), held_back AS (
        UPDATE engine_instance i SET status = 'queued', waiting_for = ''
        FROM sleeping WHERE i.key = sleeping.key
        RETURNING i.key
    )
    SELECT name, count(*), max({microseconds("wake_at")}), ARRAY(SELECT key FROM held_back) FROM due GROUP BY name
"""

# When the next one may be claimed of the workflows that have a place.
NEXT_DUE = f"""
    SELECT min(d.us) FROM ({PLACES}) AS places CROSS JOIN LATERAL (
        SELECT {microseconds("wake_at")} AS us FROM engine_instance i
        WHERE i.workflow = places.name AND i.wake_at IS NOT NULL AND i.owner IS NULL AND NOT i.isolated
        ORDER BY i.wake_at LIMIT 1
    ) d
    WHERE places.free > 0
"""
