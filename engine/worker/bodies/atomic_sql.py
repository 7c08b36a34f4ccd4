"""The statements around an atomic body or rollback, sent over its Django connection."""

from __future__ import annotations

from engine.values.columns import microseconds

# The first statement of the transaction. Its time identifies the transaction: a body that ends it with SQL continues in
# another one, unnoticed by Django. A dead worker's locks must not stay for as long as its last statement runs.
ENTER = f"""
    SELECT {microseconds("transaction_timestamp()")}, current_setting('transaction_isolation'), EXISTS (
        SELECT FROM engine_instance WHERE key = %(key)s AND fence = %(fence)s AND owner IS NOT NULL
    ), set_config('client_connection_check_interval', '500', true)
"""

# The last statement before the commit. The lock on the instance's row keeps the fence valid until the commit. It is
# taken only here, so that it is held briefly: checkpoints, heartbeats and operators need that row too. Instance,
# attempt, step: in another order this could deadlock with an operator. The fence grows with each claim, and an instance
# that is taken away without a claim has no owner.
_CHECKPOINT = f"""
    WITH ours AS MATERIALIZED (
        SELECT key FROM engine_instance
        WHERE key = %(key)s AND fence = %(fence)s AND owner IS NOT NULL
        FOR NO KEY UPDATE
    ), attempt AS (
        UPDATE engine_attempt a SET
            status = 'complete', finished_at = greatest(a.started_at, clock_timestamp())
        FROM ours
        WHERE a.instance_id = ours.key AND a.generation = %(generation)s AND a.step_seq = %(seq)s
          AND a.phase = %(phase)s AND a.number = %(number)s AND a.status = 'running'
        RETURNING a.finished_at
    ), step AS (
        UPDATE engine_step s SET [outcome]
        FROM attempt
        WHERE s.instance_id = %(key)s AND s.generation = %(generation)s AND s.seq = %(seq)s AND [open]
        RETURNING attempt.finished_at
    )
    SELECT {microseconds("transaction_timestamp()")} = %(began_us)s, (SELECT {microseconds("finished_at")} FROM step)
"""


def _checkpoint(*, outcome: str, is_open: str) -> str:
    return _CHECKPOINT.replace("[outcome]", outcome).replace("[open]", is_open)


CHECKPOINT = _checkpoint(
    outcome="status = 'complete', output = %(output)s::json, finished_at = attempt.finished_at",
    is_open="s.attempts = %(number)s AND s.status = 'running'",
)
# For a rollback. The step itself has ended before, and the rollback's return value is not stored.
CHECKPOINT_ROLLBACK = _checkpoint(
    outcome="rollback = 'complete', wake_at = NULL", is_open="s.rollback = 'running'"
)

# After a commit without an answer: end the session with the commit, unless it is this one, and then read the row. The
# lock waits for a commit that is still in progress.
END_SESSION = """
    SELECT pg_terminate_backend(pid, %(wait)s) FROM pg_stat_activity
    WHERE pid = %(pid)s AND pid <> pg_backend_pid() AND usename = current_user
      AND application_name = current_setting('application_name')
"""
IS_COMPLETE = """
    SELECT status = 'complete' FROM engine_attempt
    WHERE instance_id = %(key)s AND generation = %(generation)s AND step_seq = %(seq)s
      AND phase = %(phase)s AND number = %(number)s
    FOR UPDATE
"""
