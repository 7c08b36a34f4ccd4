"""The statements of the journal: they write what cycles have collected, and read which of it was written.

Times travel as whole microseconds since the epoch and become `timestamptz` here, so that they come back unchanged.
Rows travel as JSON arrays, one parameter a table: psycopg adapts a Python list element by element, in Python.
"""

from __future__ import annotations

from engine.values.columns import microseconds, moment
from engine.values.records import ATTEMPT, LOG, STEP
from engine.worker.database.history_sql import is_child, meant, named


def _ours(row: str) -> str:
    return f"({row}.key IN (SELECT key FROM ours)) IS TRUE"


def _goes_on(row: str) -> str:
    return f"NOT ({row}.starts AND ({row}.key IN (SELECT key FROM pausing)) IS TRUE)"


def _output(row: str) -> str:
    return f"coalesce({row}.output, (%(large)b::text[])[{row}.large])::json"


# One flush of the journal: every checkpoint of many instances in one statement and one commit. Large outputs are sent
# apart from the rows. Most flushes contain steps and attempts only: they get a shorter statement, because PostgreSQL
# prepares every part of a plan at each execution, whether it has rows or not.
#
# held   locks the rows in key order (two workers cannot deadlock) and skips those that a sender holds: one open
#        transaction must not stall the neighbours. FOR NO KEY UPDATE, and not a join: only the lock makes the fence
#        that is read here the one that counts at the commit.
# ours   drops the writes of cycles that have lost their lease. A row looks its key up there, by hash: a join would
#        compare each row with each cycle.
# steps, attempts: what starts an operation (`starts`) is left out while a pause is requested. A step that was complete
#        at once is kept, and the event that it consumed: the handler has its outcome (`Writes.settle_starts`). All is
#        kept if the handler has ended: nothing will run, and an end without the steps before it could not be replayed.
# leaves parks only if no signal came since the cycle looked, and pauses only if that is still requested. An instance
#        that is released while a pause is requested is paused: the next worker would not know of the request. The
#        status at the end is the one that was decided before the rollbacks; with `running` the instance stays, and
#        they start. One that ends has to notify the parent and other instances that wait for it. (An EXISTS within an
#        OR might be answered by reading all waiting instances.)
_STEPS = f"""
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
    )"""

_REST = f"""
    , events AS (
        UPDATE engine_event e SET state = 'consumed', consumed_by = c.seq, consumed_generation = c.generation
        FROM json_to_recordset(%(consumed)s) AS c(key bigint, generation int, event bigint, seq int)
        WHERE e.key = c.event AND e.instance_id = c.key AND e.state <> 'dropped' AND {_ours("c")}
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
            fingerprint = coalesce(l.fingerprint, i.fingerprint),
            rollback = coalesce(l.rollback, i.rollback),
            ends_as = CASE WHEN l.status IN ('complete', 'errored', 'terminated') THEN ''
                WHEN o.ends_as <> '' THEN o.ends_as ELSE coalesce(l.ends_as, '') END,
            paused_at = CASE WHEN becomes.status = 'paused' THEN clock_timestamp() END,
            finished_at = CASE WHEN l.status IN ('complete', 'errored', 'terminated') THEN clock_timestamp() END,
            notify_pending = i.notify_pending OR o.notify_pending
                OR l.status IN ('complete', 'errored', 'terminated') AND (
                i.is_tied OR (SELECT true FROM engine_waiter w WHERE w.instance_id = i.key LIMIT 1) IS TRUE
            )
        FROM json_to_recordset(%(leaves)s) AS l(key bigint, status text, waiting_for text, wake_us bigint,
            signals bigint, output text, large int, error text, pause_reason text,
            unreached int[], rollback text, ends_as text, fingerprint text)
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
    )"""

# The same with writes that concern other instances. Most flushes have none.
#
# children  are inserted with the steps that start them. A child that exists was inserted before, and the answer was
#           lost. An id that another instance has is refused, and with it the flush: see `Journal`.
# waiters   record which step waits for the end of which instance. An instance that starts in the same flush is not
#           visible yet: the step looks for it afterwards, and is recorded then.
# pending   marks instances that continue, but have cancelled a step whose child has to end.
_OTHERS = f"""
    , children AS (
        INSERT INTO engine_instance AS t (workflow, id, status, params, code, wake_at, deadline_at, created_at,
            parent_key, parent_generation, parent_step, is_tied, depth)
        SELECT c.workflow, c.id, 'queued', coalesce(c.params, (%(large)b::text[])[c.large])::json, c.code,
            clock_timestamp(), clock_timestamp() + c.timeout_us * interval '1 microsecond', clock_timestamp(),
            c.key, c.generation, c.seq, c.is_tied, c.depth
        FROM json_to_recordset(%(children)s) AS c(key bigint, generation int, seq int, workflow text, id text,
            params text, large int, code text, timeout_us bigint, is_tied bool, depth int, starts bool)
        LEFT JOIN {named("c", "key", "old")} AND {is_child("old", "c.key", "c.generation", "c.seq")}
        WHERE {_ours("c")} AND {_goes_on("c")} AND old.id IS NULL
        RETURNING pg_notify('engine_wake', '') IS NULL, pg_notify('engine_changed', t.key::text) IS NULL
    ), waiters AS (
        INSERT INTO engine_waiter (waiter_id, generation, seq, instance_id)
        SELECT w.key, w.generation, w.seq, i.key
        FROM json_to_recordset(%(waiters)s) AS w(key bigint, generation int, seq int, workflow text, id text,
            of_generation int, of_step int, starts bool)
        JOIN {named("w", "key")} AND {meant("w", "w.key")}
        WHERE {_ours("w")} AND {_goes_on("w")}
        ON CONFLICT (waiter_id, generation, seq) DO NOTHING
    ), pending AS (
        UPDATE engine_instance i SET notify_pending = true
        FROM ours o
        WHERE i.key = o.key AND o.notify_pending AND NOT EXISTS (SELECT FROM leaves l WHERE l.key = o.key)
    )"""

# The answer to each cycle: is it ours, what its row says, has it left, and do others have to be notified.
_ANSWER = f"""
    SELECT h.key, h.is_ours, h.status, h.signals, h.ends_as, l.key IS NOT NULL,
        h.notify_pending OR l.notify_pending IS TRUE, {microseconds("clock_timestamp()")}
    FROM held h LEFT JOIN leaves l ON l.key = h.key
"""
_ANSWER_TO_STEPS = f"""
    SELECT key, is_ours, status, signals, ends_as, false, false, {microseconds("clock_timestamp()")} FROM held
"""

FLUSH_STEPS = _STEPS + _ANSWER_TO_STEPS
FLUSH = _STEPS + _REST + _ANSWER
FLUSH_WITH_OTHERS = _STEPS + _REST + _OTHERS + _ANSWER

# Whether the starts of each cycle of a flush are recorded, and the log lines of its bodies: asked after the answer was
# lost, before the same is written again. The rest of a flush may be written twice.
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

# Prints statements as they are sent: python -m engine.worker.database.flush_sql FLUSH
if __name__ == "__main__":
    import sys

    for wanted in sys.argv[1:]:
        sys.stdout.write(f"{globals()[wanted]}\n")
