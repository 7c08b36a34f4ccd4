"""The statements by which a worker holds instances: its lock, its leases, what it takes back and what it releases.

Times travel as whole microseconds since the epoch and become `timestamptz` here, so that they come back unchanged.
Rows travel as JSON arrays, one parameter a table: psycopg adapts a Python list element by element, in Python.
"""

from __future__ import annotations

from engine.steer.notify import QUARANTINE
from engine.steer.transitions import RELEASED, RESUMED
from engine.values.columns import is_held, microseconds, moment

NOW = f"SELECT {microseconds('clock_timestamp()')}"

# A worker id is locked by the worker's session. When the session ends, so does the lock, and the right to what it owns.
WORKER_SPACE = 1_381_126_738  # "RPRR": keeps our locks apart from those of the application
TAKE_WORKER_LOCK = f"SELECT pg_try_advisory_lock({WORKER_SPACE}, %s)"

BACKEND = "SELECT pg_backend_pid()"

# One shift is at the front: it claims at once, while the others wait for a moment. Its place is a lock, too, with a
# number for each set of workflows.
FRONT_SPACE = WORKER_SPACE + 1
TAKE_FRONT = f"SELECT pg_try_advisory_lock({FRONT_SPACE}, %s)"

# End a session that this worker has lost: its server process may still be about to execute a statement. True when it
# has ended.
END_SESSION = """
    SELECT pg_terminate_backend(pid, %(wait)s) FROM pg_stat_activity
    WHERE pid = %(pid)s AND application_name = %(name)s
"""

# The ids of the workers whose sessions live: an owner that is not among them is dead.
LIVE_WORKERS = f"""
    SELECT objid::bigint::integer FROM pg_locks
    WHERE locktype = 'advisory' AND classid = {WORKER_SPACE} AND objsubid = 2 AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

# When the server started, ended all sessions because one of them crashed, or was promoted: a standby starts the
# launcher then. A role that cannot see the server's own processes gets the time of the server's start.
UP_SINCE = """
    SELECT greatest(pg_postmaster_start_time(), max(backend_start))
    FROM pg_stat_activity WHERE backend_type IN ('checkpointer', 'logical replication launcher')
"""

# The latest lease of each owner; the rows of silent owners that are not locked: see `database/leases.py`.
BEATS = f"SELECT owner, {microseconds('max(wake_at)')} FROM engine_instance WHERE owner IS NOT NULL GROUP BY owner"
FREE = f"""
    WITH free AS (
        SELECT key, owner, wake_at FROM engine_instance WHERE owner = ANY (%(owners)s::integer[])
        ORDER BY key FOR NO KEY UPDATE SKIP LOCKED
    )
    SELECT key, owner, {microseconds("wake_at")} FROM free
"""

# A queued instance is due, unless it is to start later. If the clock was set back since, it would wait until that time
# comes again.
DUE_AGAIN = """
    WITH early AS (
        SELECT key FROM engine_instance
        WHERE workflow = ANY (%(workflows)s::text[]) AND status = 'queued' AND owner IS NULL
          AND wake_at > greatest(clock_timestamp(), starts_at) + interval '1 second'
        ORDER BY key FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE engine_instance i SET wake_at = greatest(clock_timestamp(), i.starts_at) FROM early WHERE i.key = early.key
    RETURNING i.key
"""

# Take back what dead owners held, and living ones whose leases have expired (see `database/leases.py`). Instances that
# were to pause are paused, and their attempts are lost; the others are due at once.
#
# One of them may have killed its worker, so they are quarantined: they run alone until they progress. If the dead
# worker held a quarantined one, only that one is suspect: the others have run alone before. Nothing is quarantined if
# the worker may not have died: its lease expired while it was stopped, its lock ended with the server (to quarantine
# everything then would take too long), or it is the one that asks. Attempts that ran in quarantine are cleared then.
# SKIP LOCKED: another worker takes the row back, or a sender holds it and the next sweep follows.
REAP = f"""
    WITH held AS (
        SELECT key, generation, status = 'waiting_for_pause' AS pauses, quarantined, owner,
            owner <> ALL (ARRAY({LIVE_WORKERS})) AND owner <> ALL (%(alive)s::integer[])
            AND wake_at - %(lease)s * interval '1 second' > ({UP_SINCE}) AS is_suspect
        FROM engine_instance
        WHERE owner IS NOT NULL
          AND (owner <> ALL (ARRAY({LIVE_WORKERS})) OR (key, {microseconds("wake_at")}) IN (
            SELECT key, wake_us FROM json_to_recordset(%(over)s) AS o(key bigint, wake_us bigint, whenever bool)
            WHERE whenever OR {moment("wake_us")} < clock_timestamp()
          ))
        ORDER BY key FOR NO KEY UPDATE SKIP LOCKED
    ), releasing AS (
        SELECT key, generation, pauses, clock_timestamp() AS due_at, NULL::json AS reason, NOT is_suspect AS clears,
            is_suspect AND NOT bool_or(quarantined) OVER (PARTITION BY owner) AS quarantines
        FROM held
    ), {RELEASED}
    SELECT key FROM released
"""


# The instances that were paused because the code had changed, and whose code this worker has again. Few workflows ask
# for that pause, and paused instances are found by the index of the Studio's lists.
def _code_is_back(columns: str, limit: str) -> str:
    return f"""
    SELECT {columns} FROM unnest(%(workflows)s::text[], %(codes)s::text[]) AS w(name, code)
    JOIN engine_instance i ON i.workflow = w.name AND i.status = 'paused' AND i.code = w.code
        AND i.pause_reason ->> 'type' = 'CodeChangedError' AND NOT {is_held("i")}
    LIMIT {limit}
"""


# Resume them, without a notification: this worker claims them next, while others, which may have the new code, would
# pause them again.
GO_BACK = f"""
    WITH resuming AS (
        {_code_is_back("i.key, i.generation, i.workflow, i.id, i.paused_at", "%(limit)s")}
        FOR NO KEY UPDATE OF i SKIP LOCKED
    ), trail AS (
        INSERT INTO engine_audit (verb, actor, user_key, workflow, instance_id, instance_key, before, after,
            outcome, reason)
        SELECT 'resume', '', '', workflow, id, key, 'paused', 'queued', 'done',
            'The code that it started under is back.'
        FROM resuming
    ), {RESUMED}
    SELECT key FROM resumed
"""

# The rows that this worker holds, and whether their workflow was paused. An instance that is not among them was taken
# away.
HELD = f"""
    SELECT key, fence, status, signals, ends_as, {is_held("i")} FROM engine_instance i WHERE owner = %(worker_id)s
"""

# Release what this worker holds without a cycle: the answer to the claim was lost, or the engine has given the instance
# up, with a reason. No worker died of it.
LET_GO = f"""
    WITH releasing AS (
        SELECT i.key, i.generation, s.reason IS NOT NULL OR i.status = 'waiting_for_pause' AS pauses,
            clock_timestamp() AS due_at, s.reason::json AS reason, true AS clears, false AS quarantines
        FROM json_to_recordset(%(strays)s) AS s(key bigint, fence bigint, reason text)
        JOIN engine_instance i ON i.key = s.key AND i.fence = s.fence AND i.owner = %(worker_id)s
        ORDER BY i.key FOR NO KEY UPDATE OF i SKIP LOCKED
    ), {RELEASED}
    SELECT key FROM released
"""

# Clear a held instance: it leaves quarantine.
CLEAR = """
    UPDATE engine_instance SET quarantined = false
    WHERE key = %(key)s AND fence = %(fence)s AND owner = %(worker_id)s
    RETURNING key
"""

# Clear the attempts that run here before another instance runs beside them: a crash then proves nothing about them. The
# journal writes the same, but perhaps later.
CLEAR_ATTEMPTS = """
    WITH mine AS MATERIALIZED (
        SELECT key, generation FROM engine_instance WHERE owner = %(worker_id)s
        ORDER BY key FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE engine_attempt a SET quarantined = false
    FROM mine
    WHERE a.instance_id = mine.key AND a.generation = mine.generation AND a.quarantined AND a.status = 'running'
    RETURNING a.instance_id
"""

# What a shift looks for twice a second: rows that a dead worker has left, and pending notices.
LOOK = f"""
    SELECT EXISTS (
        SELECT FROM engine_instance WHERE owner IS NOT NULL AND owner <> ALL (ARRAY({LIVE_WORKERS}))
    ), EXISTS (SELECT FROM engine_instance WHERE notify_pending)
"""

# Release at once what was claimed and does not fit into memory: due as before, so that the oldest is still the first.
GIVE_BACK = f"""
    WITH releasing AS (
        SELECT i.key, i.generation, i.status = 'waiting_for_pause' AS pauses, {moment("g.due_us")} AS due_at,
            NULL::json AS reason, i.status = 'waiting_for_pause' AS clears, false AS quarantines
        FROM json_to_recordset(%(claims)s) AS g(key bigint, fence bigint, due_us bigint)
        JOIN engine_instance i ON i.key = g.key AND i.fence = g.fence AND i.owner = %(worker_id)s
        ORDER BY i.key FOR NO KEY UPDATE OF i SKIP LOCKED
    ), {RELEASED}
    SELECT key, pg_notify('engine_wake', '') IS NULL FROM released
"""

# A row that a sender has locked is skipped and returned: nobody can claim it meanwhile, and it is renewed as soon as
# the sender's transaction ends.
RENEW = """
    WITH mine AS MATERIALIZED (
        SELECT key FROM engine_instance
        WHERE owner = %(worker_id)s AND (%(only)s::bigint[] IS NULL OR key = ANY (%(only)s))
        ORDER BY key FOR NO KEY UPDATE SKIP LOCKED
    ), renewed AS (
        UPDATE engine_instance i SET wake_at = clock_timestamp() + %(lease)s * interval '1 second'
        FROM mine WHERE i.key = mine.key
    )
    SELECT key FROM engine_instance
    WHERE owner = %(worker_id)s AND (%(only)s::bigint[] IS NULL OR key = ANY (%(only)s))
      AND key NOT IN (SELECT key FROM mine)
"""


NOTIFY_WAKE = "SELECT pg_notify('engine_wake', '')"
NOTIFY_CHANGED = "SELECT pg_notify('engine_changed', %s)"

NOTIFY_QUARANTINE = f"SELECT pg_notify('engine_wake', '{QUARANTINE}')"
