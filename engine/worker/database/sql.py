"""The statements of a worker that the ORM cannot say.

Times travel as whole microseconds since the epoch and become `timestamptz` here, so that they come back unchanged.
Rows travel as JSON arrays, one parameter a table: psycopg adapts a Python list element by element, in Python.
"""

from __future__ import annotations

from engine.steer.notify import QUARANTINE
from engine.steer.transitions import RELEASED, RESUMED
from engine.values.columns import microseconds, moment
from engine.values.records import ATTEMPT, EVENT, LOG, STEP


def _ours(row: str) -> str:
    return f"({row}.key IN (SELECT key FROM ours)) IS TRUE"


def _goes_on(row: str) -> str:
    return f"NOT ({row}.starts AND ({row}.key IN (SELECT key FROM pausing)) IS TRUE)"


def _output(row: str) -> str:
    return f"coalesce({row}.output, (%(large)b::text[])[{row}.large])::json"


NOW = f"SELECT {microseconds('clock_timestamp()')}"

# A worker id is locked by the worker's session: the lock goes with the session, and with it the right to what it owns.
WORKER_SPACE = 1_381_126_738  # "RPRR": keeps our locks apart from those of the application
TAKE_WORKER_LOCK = f"SELECT pg_try_advisory_lock({WORKER_SPACE}, %s)"

# One shift is at the front: it claims at once what the others leave to it for a moment. Its place is a lock too. The
# number tells one set of workflows from another.
FRONT_SPACE = WORKER_SPACE + 1
TAKE_FRONT = f"SELECT pg_try_advisory_lock({FRONT_SPACE}, %s)"

# End a session of this worker's that it has lost: its server process may be about to do what it was told to. True when
# it is gone.
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

# When the server came up, took all its sessions down because one of them crashed, or was promoted: a standby starts the
# launcher then. A role that may not see the server's own processes gets the time of its start.
UP_SINCE = """
    SELECT greatest(pg_postmaster_start_time(), max(backend_start))
    FROM pg_stat_activity WHERE backend_type IN ('checkpointer', 'logical replication launcher')
"""

# The latest lease that each owner has, and what silent ones hold and nobody has locked: see `database/leases.py`.
BEATS = f"SELECT owner, {microseconds('max(wake_at)')} FROM engine_instance WHERE owner IS NOT NULL GROUP BY owner"
FREE = f"""
    WITH free AS (
        SELECT key, owner, wake_at FROM engine_instance WHERE owner = ANY (%(owners)s::integer[])
        ORDER BY key FOR NO KEY UPDATE SKIP LOCKED
    )
    SELECT key, owner, {microseconds("wake_at")} FROM free
"""

# Queued is due: where the clock was set back since, it would lie there until that time comes again.
DUE_AGAIN = """
    WITH early AS (
        SELECT key FROM engine_instance
        WHERE workflow = ANY (%(workflows)s::text[]) AND status = 'queued' AND owner IS NULL
          AND wake_at > clock_timestamp() + interval '1 second'
        ORDER BY key FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE engine_instance i SET wake_at = clock_timestamp() FROM early WHERE i.key = early.key
    RETURNING i.key
"""

# Take back what dead owners held, and living ones whose leases are over (see `database/leases.py`). Those that were
# to pause are paused, and say that their attempts are lost; the others are due at once.
#
# One of them may have killed its worker, so they are quarantined: they run alone until they get on. If the dead worker
# held a quarantined one, only that one may have: the others have run alone before. Nothing is quarantined where the
# worker need not have died: its lease ran out while it was stopped, its lock went down with the server (quarantining
# everything then would take ages), or it is the one that asks. Attempts that ran in quarantine are cleared then. SKIP
# LOCKED: another reaper is at it, or a sender, after whom the next sweep comes.
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


# Those that were paused because the code had changed, and whose code is that of this worker again. Few workflows ask
# for that pause, and paused instances are found by the index of the Studio's lists.
def _code_is_back(columns: str, limit: str) -> str:
    return f"""
    SELECT {columns} FROM unnest(%(workflows)s::text[], %(codes)s::text[]) AS w(name, code)
    JOIN engine_instance i ON i.workflow = w.name AND i.status = 'paused' AND i.code = w.code
        AND i.pause_reason ->> 'type' = 'CodeChangedError'
    LIMIT {limit}
"""


# Resume them. Nobody is told: this worker claims them next, while others, which may have the new
# code, would pause them again.
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

# What is stored of the steps of each, without unpacking it.
HISTORY_SIZES = """
    SELECT s.instance_id,
        sum(100 + coalesce(pg_column_size(s.output), 0) + coalesce(pg_column_size(s.error), 0))::bigint
    FROM unnest(%(keys)s::bigint[], %(generations)s::integer[]) AS c(key, generation)
    JOIN engine_step s ON s.instance_id = c.key AND s.generation = c.generation
    GROUP BY s.instance_id
"""

HISTORY_STEPS = f"""
    SELECT s.instance_id, {STEP.read("s")}
    FROM unnest(%(keys)s::bigint[], %(generations)s::integer[]) AS c(key, generation)
    JOIN engine_step s ON s.instance_id = c.key AND s.generation = c.generation
    ORDER BY s.instance_id, s.seq
"""

# Attempts matter only while their step is open, or being rolled back: they tell what is spent, and what a dead worker
# left behind. Their errors matter where a delay function is still to be asked about the last one.
_WANTED_ERROR = (
    "CASE WHEN s.wake_at IS NULL AND (s.status = 'waiting' OR s.rollback = 'running') THEN a.error::text END"
)
HISTORY_ATTEMPTS = f"""
    SELECT a.instance_id, {ATTEMPT.read("a", error=_WANTED_ERROR)}
    FROM unnest(%(keys)s::bigint[], %(generations)s::integer[]) AS c(key, generation)
    JOIN engine_step s ON s.instance_id = c.key AND s.generation = c.generation
        AND (s.status IN ('running', 'waiting') OR s.rollback = 'running') AND s.kind = 'do'
    JOIN engine_attempt a ON a.instance_id = s.instance_id AND a.generation = s.generation
        AND a.step_seq = s.seq AND a.phase = CASE WHEN s.rollback = 'running' THEN 'rollback' ELSE 'do' END
    ORDER BY a.instance_id, a.step_seq, a.number
"""

# A page of what was not consumed of each instance, oldest first, of some types or, where those are NULL, of all. A
# page ends after so many events or bytes, as they are stored: what is left out is not even unpacked. The first column
# tells how many bytes that makes so far.
BUFFERED_EVENTS = f"""
    SELECT so_far, instance_id, {EVENT.read("page")}
    FROM (
        SELECT e.*, pg_column_size(e.payload) AS size,
            sum(pg_column_size(e.payload)) OVER (ORDER BY e.instance_id, e.key) AS so_far
        FROM unnest(%(keys)s::bigint[]) AS c(key)
        CROSS JOIN LATERAL (
            SELECT * FROM engine_event
            WHERE instance_id = c.key AND state = 'buffered' AND key > %(after)s
              AND (%(types)s::text[] IS NULL OR type = ANY (%(types)s))
            ORDER BY key LIMIT %(limit)s
        ) e
    ) page
    WHERE so_far - size < %(bytes)s
    ORDER BY instance_id, key
"""

# What the rows say that this worker holds: what is not among them is lost.
HELD = "SELECT key, fence, status, signals, ends_as FROM engine_instance WHERE owner = %(worker_id)s"

# Let go of what this worker holds and no cycle drives: the answer to its claim was lost, or the engine has given it up,
# and says why. Nobody died of it.
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

# Clear an instance that is held: it leaves the quarantine.
CLEAR = """
    UPDATE engine_instance SET quarantined = false
    WHERE key = %(key)s AND fence = %(fence)s AND owner = %(worker_id)s
    RETURNING key
"""

# Clear the attempts that run here, before another instance runs beside them: a crash then says nothing about them. The
# journal says it as well, but may come later.
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

# What a shift looks for twice a second: what a dead worker has left, and ends that others do not know of.
LOOK = f"""
    SELECT EXISTS (
        SELECT FROM engine_instance WHERE owner IS NOT NULL AND owner <> ALL (ARRAY({LIVE_WORKERS}))
    ), EXISTS (SELECT FROM engine_instance WHERE notify_pending)
"""

# Give back at once what was claimed and finds no room: due as before, so that the oldest is still the first.
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

# A row that a sender holds in an open transaction is passed over, and comes back: nobody can claim it meanwhile, and it
# is renewed as soon as that ends.
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


# The instance that a row names by workflow and id. Looked for by order, so that a plan made for an empty table uses the
# index of both: that of the Studio's lists looks as good to it, and would read all instances of the workflow.
def _named(row: str, columns: str, name: str = "i") -> str:
    return f"""
        LATERAL (
            SELECT {columns}, id, parent_key, parent_generation, parent_step FROM engine_instance
            WHERE workflow = {row}.workflow AND id >= {row}.id ORDER BY id LIMIT 1
        ) {name} ON {name}.id = {row}.id"""


def _is_child(name: str, *origin: str) -> str:
    return f"({name}.parent_key, {name}.parent_generation, {name}.parent_step) = ({', '.join(origin)})"


# The one that is meant: where a step has started it, that step's child and no other instance of that name.
def _meant(row: str, key: str) -> str:
    return f"({row}.of_step IS NULL OR {_is_child('i', key, f'{row}.of_generation', f'{row}.of_step')})"


# What the instances have come to that steps wait for. Of those that have not ended, nothing more than that is read.
# What was noted once is meant from then on, and nothing that has come after it under the same name.
RELATIVES = f"""
    SELECT r.seq, i.status, CASE WHEN i.finished_at IS NOT NULL THEN i.output::text END,
        CASE WHEN i.finished_at IS NOT NULL THEN i.error::text END, {microseconds("i.finished_at")}, w.seq IS NOT NULL
    FROM json_to_recordset(%(wanted)s)
        AS r(seq int, workflow text, id text, of_generation int, of_step int)
    LEFT JOIN engine_waiter w ON w.waiter_id = %(key)s AND w.generation = %(generation)s AND w.seq = r.seq
    LEFT JOIN {_named("r", "key, status, output, error, finished_at")}
        AND {_meant("r", "%(key)s")} AND (w.seq IS NULL OR i.key = w.instance_id)
"""


# One flush of the journal: every checkpoint of many instances in one statement and one commit. Large outputs come
# beside the rows.
#
# held   locks the rows in key order (two workers cannot deadlock) and skips those that a sender holds: one open
#        transaction must not stall the neighbours. FOR NO KEY UPDATE, and not a join: only the lock makes the fence
#        that is read here the one that counts at the commit.
# ours   drops the writes of cycles whose lease is gone. A row looks its key up there, by hash: a join would compare
#        each row with each cycle.
# steps, attempts, events: what begins an operation (`starts`) is left out while a pause is asked for. Not so where the
#        handler has ended: nothing of it will run, and an end without what led to it could not be replayed.
# leaves parks only if no signal came since the cycle looked, and pauses only if that is still asked for. What is
#        given back while a pause is asked for is paused by that: the next worker would know nothing of it. Nothing ends
#        otherwise than it was told to end after its rollbacks; with `running` it stays, and these begin. One that ends
#        has to notify the parent that waits for it, and other instances that do. (An EXISTS within an OR might be
#        answered by reading all that wait.)
def _flush(others: str = "") -> str:
    return f"""
    WITH held AS MATERIALIZED (
        SELECT i.key, i.status, i.signals, i.ends_as,
            (i.fence = c.fence AND i.owner IS NOT DISTINCT FROM %(worker_id)s::integer) AS is_ours, c.ends,
            c.notify_pending IS TRUE AS notify_pending
        FROM json_to_recordset(%(cycles)s) AS c(key bigint, fence bigint, ends bool, notify_pending bool)
        JOIN engine_instance i ON i.key = c.key
        ORDER BY i.key FOR NO KEY UPDATE OF i SKIP LOCKED
    ), ours AS (
        SELECT key, status, signals, ends_as, notify_pending, status = 'waiting_for_pause' AND NOT ends AS is_pausing
        FROM held WHERE is_ours
    ), pausing AS (
        SELECT key FROM ours WHERE is_pausing
    ), steps AS (
        INSERT INTO engine_step AS t (instance_id, generation, {STEP.inserted()})
        SELECT s.key, s.generation, {STEP.stored("s")}
        FROM json_to_recordset(%(steps)s)
            AS s(key bigint, generation int, starts bool, {STEP.sent()})
        WHERE {_ours("s")} AND {_goes_on("s")}
        ON CONFLICT (instance_id, generation, seq) DO UPDATE SET
            {STEP.updated()}
    ), attempts AS (
        INSERT INTO engine_attempt AS t (instance_id, generation, {ATTEMPT.inserted()})
        SELECT a.key, a.generation, {ATTEMPT.stored("a")}
        FROM json_to_recordset(%(attempts)s)
            AS a(key bigint, generation int, starts bool, {ATTEMPT.sent()})
        WHERE {_ours("a")} AND {_goes_on("a")}
        ON CONFLICT (instance_id, generation, step_seq, phase, number) DO UPDATE SET
            {ATTEMPT.updated()}
        -- An atomic body may have recorded its end meanwhile.
        WHERE t.status = 'running' OR excluded.status <> 'running'
    ), events AS (
        UPDATE engine_event e SET state = 'consumed', consumed_by = c.seq, consumed_generation = c.generation
        FROM json_to_recordset(%(consumed)s) AS c(key bigint, generation int, event bigint, seq int, starts bool)
        WHERE e.key = c.event AND e.instance_id = c.key AND e.state <> 'dropped'
          AND {_ours("c")} AND {_goes_on("c")}
    ), logs AS (
        INSERT INTO engine_log (instance_id, generation, {LOG.inserted()})
        SELECT l.key, l.generation, {LOG.stored("l")}
        FROM json_to_recordset(%(logs)s) AS l(key bigint, generation int, {LOG.sent()})
        WHERE {_ours("l")}
        ON CONFLICT (instance_id, generation, position) WHERE position IS NOT NULL DO NOTHING
    ), leaves AS (
        UPDATE engine_instance i SET
            owner = CASE WHEN l.status = 'running' THEN i.owner END,
            quarantined = i.quarantined AND l.status = 'running',
            status = becomes.status, waiting_for = l.waiting_for,
            wake_at = CASE WHEN becomes.status = 'queued' THEN clock_timestamp()
                WHEN l.status = 'running' THEN i.wake_at ELSE {moment("l.wake_us")} END,
            output = {_output("l")}, unreached = coalesce(l.unreached, '{{}}'),
            error = coalesce(l.error::json, i.error), pause_reason = l.pause_reason::json,
            rollback = coalesce(l.rollback, i.rollback),
            ends_as = CASE WHEN l.status IN ('complete', 'errored', 'terminated') THEN ''
                WHEN o.ends_as <> '' THEN o.ends_as ELSE coalesce(l.ends_as, '') END,
            paused_at = CASE WHEN becomes.status = 'paused' THEN clock_timestamp() END,
            finished_at = CASE WHEN l.status IN ('complete', 'errored', 'terminated') THEN clock_timestamp() END,
            notify_pending = i.notify_pending OR o.notify_pending OR l.status IN ('complete', 'errored', 'terminated')
            AND (
                i.is_tied OR (SELECT true FROM engine_waiter w WHERE w.instance_id = i.key LIMIT 1) IS TRUE
            )
        FROM json_to_recordset(%(leaves)s) AS l(key bigint, status text, waiting_for text, wake_us bigint,
            signals bigint, output text, large int, error text, pause_reason text,
            unreached int[], rollback text, ends_as text)
        JOIN ours o ON o.key = l.key
        CROSS JOIN LATERAL (
            SELECT CASE WHEN l.status = 'queued' AND o.is_pausing THEN 'paused'
                WHEN l.status = 'running' THEN o.status ELSE l.status END AS status
        ) AS becomes
        WHERE i.key = l.key AND (l.signals IS NULL OR l.signals = o.signals)
          AND (l.status <> 'paused' OR o.is_pausing OR l.pause_reason IS NOT NULL)
          AND (o.ends_as IN ('', l.ends_as) OR l.status IN ('queued', 'waiting', 'paused'))
        RETURNING i.key, i.notify_pending,
            CASE WHEN becomes.status = 'queued' THEN pg_notify('engine_wake', '') IS NULL END AS told
    ){others}
    SELECT h.key, h.is_ours, h.status, h.signals, h.ends_as, l.key IS NOT NULL,
        h.notify_pending OR l.notify_pending IS TRUE, {microseconds("clock_timestamp()")}
    FROM held h LEFT JOIN leaves l ON l.key = h.key
"""


FLUSH = _flush()

# The same with what concerns other instances, which most flushes do not.
#
# children  are inserted with the steps that start them. One that is there was inserted before, and its answer was lost.
#           An id that another instance has is refused, and with it the flush: see `Journal`.
# waiters   note who waits for the end of which instance. Of one that begins in this very flush nothing can be seen yet:
#           the step looks at it afterwards, and is noted then.
# pending   marks those that go on, but have cancelled a step with a child, which is to end.
FLUSH_WITH_OTHERS = _flush(
    f"""
    , children AS (
        INSERT INTO engine_instance AS t (workflow, id, status, params, code, wake_at, deadline_at, created_at,
            parent_key, parent_generation, parent_step, is_tied, depth)
        SELECT c.workflow, c.id, 'queued', coalesce(c.params, (%(large)b::text[])[c.large])::json, c.code,
            clock_timestamp(), clock_timestamp() + c.timeout_us * interval '1 microsecond', clock_timestamp(),
            c.key, c.generation, c.seq, c.is_tied, c.depth
        FROM json_to_recordset(%(children)s) AS c(key bigint, generation int, seq int, workflow text, id text,
            params text, large int, code text, timeout_us bigint, is_tied bool, depth int, starts bool)
        LEFT JOIN {_named("c", "key", "old")} AND {_is_child("old", "c.key", "c.generation", "c.seq")}
        WHERE {_ours("c")} AND {_goes_on("c")} AND old.id IS NULL
        RETURNING pg_notify('engine_wake', '') IS NULL, pg_notify('engine_changed', t.key::text) IS NULL
    ), waiters AS (
        INSERT INTO engine_waiter (waiter_id, generation, seq, instance_id)
        SELECT w.key, w.generation, w.seq, i.key
        FROM json_to_recordset(%(waiters)s) AS w(key bigint, generation int, seq int, workflow text, id text,
            of_generation int, of_step int, starts bool)
        JOIN {_named("w", "key")} AND {_meant("w", "w.key")}
        WHERE {_ours("w")} AND {_goes_on("w")}
        ON CONFLICT (waiter_id, generation, seq) DO NOTHING
    ), pending AS (
        UPDATE engine_instance i SET notify_pending = true
        FROM ours o
        WHERE i.key = o.key AND o.notify_pending AND NOT EXISTS (SELECT FROM leaves l WHERE l.key = o.key)
    )"""
)

# Which of the cycles of a flush have their starts recorded, and their lines of bodies: asked when the answer was lost,
# and the same is to be written again. The rest of a flush may be written twice.
RECORDED = f"""
    SELECT c.key, EXISTS (
        SELECT FROM json_to_recordset(%(starts)s) AS b(key bigint, seq int, attempts int)
        JOIN engine_step s ON s.instance_id = b.key AND s.generation = i.generation AND s.seq = b.seq
            AND s.attempts >= b.attempts
        WHERE b.key = c.key
    ), EXISTS (
        SELECT FROM json_to_recordset(%(lines)s) AS b(key bigint, seq int, attempt int, message text, at_us bigint)
        JOIN engine_log l ON l.instance_id = b.key AND l.generation = i.generation AND l.position IS NULL
            AND l.step_seq = b.seq AND l.attempt = b.attempt AND l.message = b.message
            AND l.at = {moment("b.at_us")}
        WHERE b.key = c.key
    )
    FROM json_to_recordset(%(cycles)s) AS c(key bigint, fence bigint)
    JOIN engine_instance i ON i.key = c.key AND i.fence = c.fence AND i.owner = %(worker_id)s
"""

NOTIFY_WAKE = "SELECT pg_notify('engine_wake', '')"
NOTIFY_CHANGED = "SELECT pg_notify('engine_changed', %s)"

NOTIFY_QUARANTINE = f"SELECT pg_notify('engine_wake', '{QUARANTINE}')"

if __name__ == "__main__":  # print statements as they are sent: python -m engine.worker.database.sql FLUSH
    import sys

    for wanted in sys.argv[1:]:
        sys.stdout.write(f"{globals()[wanted]}\n")
