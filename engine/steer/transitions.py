"""The writes of each transition of an instance from outside its cycle: one declaration for all callers.

A declaration is the rest of a WITH. The caller writes the first part, with the name in the comment above: which
instances, with their rows locked (in that part or before). The last part returns the written rows, so the caller can
count them and notify others. Lock order: instance, steps, attempts.

What a cycle does itself (park, end, start its rollbacks) is written by the flush (`engine.worker.database.flush_sql`).
"""

from __future__ import annotations

from engine.values.states import OPEN_STEPS_SQL

# Terminate. `ending` has key, generation and owner; `ended` has key and owner.
#
# The raised fence refuses the writes of a worker that still holds it. If no worker holds it, a running attempt was left
# by a dead worker: it is lost, and its step counts that. Running rollbacks are interrupted and count as failed. Other
# instances must be notified (`engine.steer.relations`).
ENDED = f"""
ended_steps AS (
    UPDATE engine_step s SET
        status = CASE WHEN s.status IN {OPEN_STEPS_SQL} THEN 'cancelled' ELSE s.status END,
        finished_at = CASE WHEN s.status IN {OPEN_STEPS_SQL} THEN clock_timestamp() ELSE s.finished_at END,
        error = CASE WHEN s.status IN {OPEN_STEPS_SQL} THEN NULL ELSE s.error END,
        lost = s.lost + CASE WHEN e.owner IS NULL THEN (
            SELECT count(*) FROM engine_attempt a
            WHERE a.instance_id = s.instance_id AND a.generation = s.generation AND a.step_seq = s.seq
              AND a.phase = 'do' AND a.status = 'running'
        ) ELSE 0 END,
        rollback = CASE WHEN s.rollback = 'running' THEN 'failed' ELSE s.rollback END,
        wake_at = CASE WHEN s.rollback = 'running' THEN NULL ELSE s.wake_at END
    FROM ending e
    WHERE s.instance_id = e.key AND s.generation = e.generation
      AND (s.status IN {OPEN_STEPS_SQL} OR s.rollback = 'running')
), ended_attempts AS (
    UPDATE engine_attempt a SET
        status = CASE WHEN e.owner IS NULL THEN 'lost' ELSE 'cancelled' END, finished_at = clock_timestamp()
    FROM ending e
    WHERE a.instance_id = e.key AND a.generation = e.generation AND a.status = 'running'
), ended AS (
    UPDATE engine_instance i SET
        status = 'terminated', finished_at = clock_timestamp(), owner = NULL, wake_at = NULL, waiting_for = '',
        paused_at = NULL, rollback = CASE WHEN i.rollback = 'running' THEN 'failed' ELSE i.rollback END, ends_as = '',
        fence = i.fence + 1, signals = i.signals + 1, notify_pending = true
    FROM ending e WHERE i.key = e.key
    RETURNING i.key, e.owner
)"""

# Continue after a pause, due at once, or when it is to start. `resuming` has key, generation and paused_at; `resumed`
# has key.
#
# Waits are extended by the time paused, fixed moments are not. The same time for all steps keeps their order.
RESUMED = f"""
shifted_steps AS (
    UPDATE engine_step s SET wake_at = s.wake_at + (statement_timestamp() - r.paused_at)
    FROM resuming r
    WHERE s.instance_id = r.key AND s.generation = r.generation
      AND (s.status IN {OPEN_STEPS_SQL} OR s.rollback = 'running')
      AND s.wake_at IS NOT NULL AND NOT s.wake_is_fixed
), resumed AS (
    UPDATE engine_instance i SET
        status = 'queued', wake_at = greatest(clock_timestamp(), i.starts_at), paused_at = NULL, pause_reason = NULL,
        signals = i.signals + 1
    FROM resuming r WHERE i.key = r.key
    RETURNING i.key
)"""

# Leave an instance to the next worker or, where it `pauses`, to nobody. `releasing` has key, generation, pauses,
# due_at, reason (why the engine pauses it), clears (nobody died of the attempts that are open) and quarantines (it may
# have killed its worker); `released` has key.
#
# If the instance is cleared, a running attempt no longer counts as a crash. If it pauses, the attempt is lost: the step
# counts that and waits until the instance is resumed. Otherwise the next worker closes it.
RELEASED = """
cleared_attempts AS (
    UPDATE engine_attempt a SET quarantined = false
    FROM releasing r
    WHERE a.instance_id = r.key AND a.generation = r.generation AND a.status = 'running' AND a.quarantined
      AND r.clears AND NOT r.pauses
), lost_attempts AS (
    UPDATE engine_attempt a SET
        status = 'lost', finished_at = clock_timestamp(), quarantined = a.quarantined AND NOT r.clears
    FROM releasing r
    WHERE a.instance_id = r.key AND a.generation = r.generation AND a.status = 'running' AND r.pauses
    RETURNING a.instance_id, a.generation, a.step_seq, a.phase
), lost_steps AS (
    UPDATE engine_step s SET
        lost = s.lost + 1,
        wake_at = CASE WHEN s.status = 'running' THEN clock_timestamp() ELSE s.wake_at END,
        status = CASE WHEN s.status = 'running' THEN 'waiting' ELSE s.status END
    FROM lost_attempts a
    WHERE s.instance_id = a.instance_id AND s.generation = a.generation AND s.seq = a.step_seq AND a.phase = 'do'
), released AS (
    UPDATE engine_instance i SET
        owner = NULL, waiting_for = '', quarantined = i.quarantined OR r.quarantines, signals = i.signals + 1,
        status = CASE WHEN r.pauses THEN 'paused' ELSE 'queued' END,
        paused_at = CASE WHEN r.pauses THEN clock_timestamp() END,
        wake_at = CASE WHEN r.pauses THEN NULL ELSE r.due_at END,
        pause_reason = r.reason
    FROM releasing r WHERE i.key = r.key
    RETURNING i.key
)"""

# For one instance whose row the caller has locked and whose status allows it. Each notifies the Studio, and the worker
# that held it or, if it is due, all workers.
END = f"""
WITH ending AS (SELECT key, generation, owner FROM engine_instance WHERE key = %(key)s), {ENDED}
SELECT key, pg_notify('engine_changed', key::text) IS NULL,
    CASE WHEN owner IS NOT NULL THEN pg_notify('engine_wake', owner::text) IS NULL END
FROM ended
"""
RESUME = f"""
WITH resuming AS (SELECT key, generation, paused_at FROM engine_instance WHERE key = %(key)s), {RESUMED}
SELECT key, pg_notify('engine_changed', key::text) IS NULL, pg_notify('engine_wake', '') IS NULL FROM resumed
"""
# For an instance that no worker holds. (A worker that holds it is asked by the status to pause it when its bodies end.)
PAUSE = f"""
WITH releasing AS (
    SELECT key, generation, true AS pauses, NULL::timestamptz AS due_at, NULL::json AS reason, false AS clears,
        false AS quarantines
    FROM engine_instance WHERE key = %(key)s
), {RELEASED}
SELECT key, pg_notify('engine_changed', key::text) IS NULL FROM released
"""

# Ends sleeps and back-offs of one instance, whose row the caller has locked: from now on these steps are due. A parked
# instance becomes due with them. One that a worker holds keeps its wake-up, the end of the lease, and its worker reads
# the rows of the steps. The same time for all, because a parked instance wakes up with one of its steps.
WAKE = """
WITH moment AS MATERIALIZED (SELECT clock_timestamp() AS at), steps AS (
    UPDATE engine_step s SET wake_at = moment.at FROM moment
    WHERE s.instance_id = %(key)s AND s.generation = %(generation)s AND s.seq = ANY (%(seqs)s)
)
UPDATE engine_instance i SET
    signals = i.signals + 1,
    wake_at = CASE WHEN i.owner IS NULL THEN least(i.wake_at, moment.at) ELSE i.wake_at END
FROM moment WHERE i.key = %(key)s
RETURNING pg_notify('engine_changed', i.key::text) IS NULL,
    pg_notify('engine_wake', coalesce(i.owner::text, '')) IS NULL
"""
