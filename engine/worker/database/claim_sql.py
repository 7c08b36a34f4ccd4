"""The statements of a claim: what is due, of which workflows, and how many of each may be held at a time.

The workflows that a shift serves are parameters, from the code: `unlimited` names those without a limit, `limited`
those with one (`max_running`), and `limits` are their numbers. A worker that claims from a workflow with a limit holds
its lock until the claim is committed, and counts after it has taken the lock: the snapshot of a statement shows what
was committed before. So workers together never hold more than the limit. Nothing is locked for the others.

Instances over the limit keep their wake-up and are skipped: with 10,000 of them, these checks took 0.64 ms instead of
0.56, and a claim as long as before (2 ms), on a busy machine.

Of a paused workflow, only what was released in that pause is claimed, through an index of its own: with any number of
held instances that are due, a claim reads none of them. Pauses are read without locks, so a transaction that holds one
delays nobody; a claim may miss a pause that is committed meanwhile, and the worker is notified of it.
"""

from __future__ import annotations

from dataclasses import fields

from engine.replay.host import Claimed
from engine.values.columns import is_held, microseconds, moment
from engine.worker.database.sql import WORKER_SPACE

LOCK_SPACE = WORKER_SPACE + 2

# A worker paused between the two statements of a claim must not block others from the workflow.
PATIENCE = "5s"

# What a cycle starts with, from `due` and the row after the claim.
_CLAIMED = {
    "key": "i.key",
    "workflow": "i.workflow",
    "id": "i.id",
    "generation": "i.generation",
    "fence": "i.fence",
    "signals": "i.signals",
    "params": "i.params::text",
    "started_us": microseconds("i.started_at"),
    "deadline_us": microseconds("i.deadline_at"),
    "quarantined": "i.quarantined",
    "due_us": microseconds("due.wake_at"),
    "log_lines": """coalesce((
            SELECT max(l.position) FROM engine_log l
            WHERE l.instance_id = i.key AND l.generation = i.generation AND l.position > 0 AND i.fence > 1
        ), 0)""",
    "code": "i.code",
    "ends_as": "i.ends_as",
    "error": "CASE WHEN i.rollback = 'running' THEN i.error::text END",
    "depth": "i.depth",
    "keys_from": "i.keys_from",
}
assert [*_CLAIMED] == [field.name for field in fields(Claimed)]

# Take what is due for this worker.
TAKE = f"""
    UPDATE engine_instance i SET
        owner = %(worker_id)s, fence = i.fence + 1, status = 'running', waiting_for = '',
        wake_at = clock_timestamp() + %(lease)s * interval '1 second',
        started_at = coalesce(i.started_at, clock_timestamp())
    FROM due WHERE i.key = due.key
    RETURNING {", ".join(_CLAIMED.values())}
"""

PAUSED = "SELECT workflow FROM engine_workflow_pause"

# The workflows with a limit, their free capacity, and their pauses. Held instances have one of two statuses and are
# counted through the index of the Studio's lists. One place is kept for a quarantined instance, if one is due and none
# is held: only a process of its own claims those, and it would always be too late.
PLACES = f"""
    SELECT l.name, (SELECT key FROM engine_workflow_pause WHERE workflow = l.name) AS pause,
        l.most - held.count AS for_quarantined,
        l.most - held.count - CASE WHEN held.has_quarantined THEN 0 ELSE (
        SELECT count(*) FROM (
            SELECT FROM engine_instance i
            WHERE workflow = l.name AND quarantined AND owner IS NULL AND wake_at <= (SELECT clock_timestamp())
              AND NOT {is_held("i")}
            LIMIT 1
        ) AS suspect
    ) END AS free
    FROM unnest(%(limited)s::text[], %(limits)s::integer[]) AS l(name, most) CROSS JOIN LATERAL (
        SELECT count(*)::integer AS count, coalesce(bool_or(quarantined), false) AS has_quarantined
        FROM engine_instance
        WHERE workflow = l.name AND status IN ('running', 'waiting_for_pause')
    ) held
"""


# The workflows in which a claim would find something. Asked first and without locks, because there is usually nothing.
# (The order helps the planner, which might otherwise scan the table for any row.)
def _open(which: str, free: str) -> str:
    def some(among: str) -> str:
        return f"""(
        SELECT true FROM engine_instance i
        WHERE {among} AND i.wake_at <= (SELECT clock_timestamp()) AND i.owner IS NULL AND {which}
        ORDER BY i.wake_at LIMIT 1
    )"""

    return f"""
    WITH places AS MATERIALIZED ({PLACES})
    SELECT name FROM places
    WHERE {free} > 0 AND CASE WHEN pause IS NULL THEN {some("i.workflow = places.name")}
    ELSE {some("i.released_in = places.pause")} END
    """


OPEN = _open("NOT i.quarantined", "free")
OPEN_QUARANTINED = _open("i.quarantined", "for_quarantined")

# The workflows whose lock this transaction could take. No session waits: the holder of the lock claims what is due, and
# the next try finds what it did not see.
LOCK = f"""
    WITH locked AS MATERIALIZED (
        SELECT name FROM unnest(%(limited)s::text[]) AS l(name)
        WHERE pg_try_advisory_xact_lock({LOCK_SPACE}, hashtext(name))
    )
    SELECT name FROM locked
    WHERE set_config('idle_in_transaction_session_timeout', '{PATIENCE}', true) IS NOT NULL
"""


# An instance that was started for later, and has not run yet.
_STARTS_LATER = "(i.starts_at IS NOT NULL AND i.started_at IS NULL)"


# The oldest due instances of the workflows without a limit. One index range per workflow, so that the index provides
# the order and a backlog of any size costs the same; rows beyond the outer LIMIT are unlocked at the end of the
# statement. The sub-select around clock_timestamp() makes it a single value that the index can use. Instances due
# within `ahead` seconds are also claimed: replayed in advance, they continue exactly when they are due. Those that were
# started for later are not, because their handlers would begin too early. Queued instances are left to other shifts for
# `late_new` seconds.
def _unlimited(which: str) -> str:
    def oldest(among: str) -> str:
        return f"""CROSS JOIN LATERAL (
            SELECT key, wake_at FROM engine_instance i
            WHERE {among} AND i.wake_at <= (SELECT clock_timestamp() + %(ahead)s * interval '1 second')
              AND i.owner IS NULL AND {which} AND (
                i.status <> 'queued'
                OR i.wake_at <= (SELECT clock_timestamp() - %(late_new)s * interval '1 second')
              ) AND (NOT {_STARTS_LATER} OR i.wake_at <= (SELECT clock_timestamp()))
            ORDER BY i.wake_at LIMIT %(limit)s
            FOR NO KEY UPDATE SKIP LOCKED
        ) d"""

    return f"""
        SELECT d.key, d.wake_at FROM unnest(%(unlimited)s::text[]) AS w(name)
        {oldest("i.workflow = w.name")}
        WHERE w.name <> ALL (ARRAY({PAUSED}))
        UNION ALL
        SELECT d.key, d.wake_at FROM engine_workflow_pause AS w
        {oldest("i.released_in = w.key")}
        WHERE w.workflow = ANY (%(unlimited)s::text[])
        ORDER BY wake_at LIMIT %(limit)s
    """


# The oldest due instances of the locked workflows with a limit: as many of each as the limit allows, those that have
# run before ahead of new ones. None is claimed before it is due, because it would use capacity for nothing.
def _limited(began: str, which: str, most: str, due_at: str) -> str:
    def oldest(among: str) -> str:
        return f"""
        SELECT d.key, d.wake_at, places.name FROM places CROSS JOIN LATERAL (
            SELECT key, wake_at FROM engine_instance i
            WHERE {among} AND i.wake_at <= (SELECT {due_at}) AND i.owner IS NULL
              AND {which} AND i.started_at IS {began}
            ORDER BY i.wake_at LIMIT greatest({most}, 0)
            FOR NO KEY UPDATE SKIP LOCKED
        ) d
    """

    return f"""
        {oldest("i.workflow = places.name")} WHERE places.pause IS NULL
        UNION ALL
        {oldest("i.released_in = places.pause")}
    """


# Claim both kinds. Each workflow with a limit, and all without one together, take turns: none takes all slots while
# another one has anything due.
def _claim(which: str, free: str) -> str:
    rest = f"places.{free} - (SELECT count(*) FROM woken w WHERE w.name = places.name)"
    due_at = "clock_timestamp() + least(%(ahead)s, 0) * interval '1 second'"
    new_at = "clock_timestamp() - greatest(%(late_new)s, 0) * interval '1 second'"
    return f"""
    WITH places AS MATERIALIZED ({PLACES}), woken AS MATERIALIZED (
        {_limited("NOT NULL", which, f"places.{free}", due_at)}
    ), fresh AS MATERIALIZED (
        {_limited("NULL", which, rest, new_at)}
    ), unlimited AS MATERIALIZED (
        {_unlimited(which)}
    ), due AS (
        SELECT key, wake_at FROM (
            SELECT key, wake_at, row_number() OVER (PARTITION BY name ORDER BY is_fresh, wake_at) AS turn
            FROM (
                SELECT *, false AS is_fresh FROM woken UNION ALL SELECT *, true FROM fresh
                UNION ALL SELECT *, '', false FROM unlimited
            ) AS either
        ) AS in_turn
        ORDER BY turn, wake_at LIMIT %(limit)s
    )
    {TAKE}
    """


# The claim if no workflow has a limit. CLAIM_WITH_LIMITS would do the same, but needs twice the time to find that
# nothing is due: 166 µs instead of 74.
CLAIM = f"WITH due AS ({_unlimited('NOT i.quarantined')}) {TAKE}"
CLAIM_WITH_LIMITS = _claim("NOT i.quarantined", "free")
CLAIM_QUARANTINED = _claim("i.quarantined", "for_quarantined")

# If a locked workflow is full, mark its due instances as queued instead of waiting. Continues where the last call
# ended, with this many rows of each workflow, and returns how far it got.
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
        WHERE places.free <= 0 AND places.pause IS NULL
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


# When the next instance may be claimed, in microseconds, for the wait between claims: `ahead` seconds before it is due,
# and not before it is due if it is to start then.
def _next(among: str, ahead: str = "%(ahead)s") -> str:
    return f"""CROSS JOIN LATERAL (
            SELECT {microseconds("wake_at")}
                - (CASE WHEN {_STARTS_LATER} THEN least({ahead}, 0) ELSE {ahead} END * 1000000)::bigint AS us
            FROM engine_instance i
            WHERE {among} AND i.wake_at IS NOT NULL AND i.owner IS NULL AND NOT i.quarantined
            ORDER BY i.wake_at LIMIT 1
        ) d"""


NEXT_DUE = f"""
    SELECT least((
        SELECT min(d.us) FROM unnest(%(unlimited)s::text[]) AS w(name) {_next("i.workflow = w.name")}
        WHERE w.name <> ALL (ARRAY({PAUSED}))
    ), (
        SELECT min(d.us) FROM engine_workflow_pause AS w {_next("i.released_in = w.key")}
        WHERE w.workflow = ANY (%(unlimited)s::text[])
    ))
"""

# The same if some workflows have a limit: those not before they are due, and only if the limit allows it.
_LATE = "least(%(ahead)s, 0)"
NEXT_DUE_WITH_LIMITS = f"""
    WITH places AS MATERIALIZED ({PLACES}), next AS (
        SELECT d.us FROM places {_next("i.workflow = places.name", _LATE)}
        WHERE places.free > 0 AND places.pause IS NULL
        UNION ALL
        SELECT d.us FROM places {_next("i.released_in = places.pause", _LATE)} WHERE places.free > 0
    )
    SELECT least(({NEXT_DUE}), (SELECT min(us) FROM next))
"""

# How many quarantined instances are due, for workflows with a limit at most as many as it allows.
QUARANTINED = f"""
    SELECT (
        SELECT count(*) FROM (
            SELECT FROM engine_instance i
            WHERE quarantined AND owner IS NULL AND workflow = ANY(%(unlimited)s::text[])
              AND wake_at <= clock_timestamp() AND NOT {is_held("i")}
            LIMIT %(quarantined)s
        ) AS waiting
    ) + (
        SELECT count(*) FROM ({PLACES}) AS places CROSS JOIN LATERAL (
            SELECT FROM engine_instance i
            WHERE quarantined AND owner IS NULL AND workflow = places.name
              AND wake_at <= clock_timestamp() AND NOT {is_held("i")}
            LIMIT greatest(least(places.for_quarantined, %(quarantined)s), 0)
        ) AS waiting
    )
"""
