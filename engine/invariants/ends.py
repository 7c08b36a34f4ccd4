"""Invariants of instances that are finished or paused."""

from __future__ import annotations

from engine.invariants.invariant import Invariant
from engine.values.states import FINAL_SQL

INVARIANTS = (
    Invariant(
        "I6",
        "finished-is-idle",
        "A finished instance has an end time, and no owner, wake-up or wait. An open instance has no end "
        "time.",
        f"""
        SELECT key, status FROM engine_instance
        WHERE CASE WHEN status IN {FINAL_SQL}
            THEN finished_at IS NULL OR owner IS NOT NULL OR wake_at IS NOT NULL OR waiting_for <> ''
            ELSE finished_at IS NOT NULL END
        """,
    ),
    Invariant(
        "I6",
        "finished-has-an-outcome",
        "A finished instance has the outcome that its status implies. An open instance has no output.",
        """
        SELECT key, status FROM engine_instance
        WHERE (output IS NOT NULL) <> (status = 'complete')
           OR (status = 'complete' AND error IS NOT NULL) OR (status = 'errored' AND error IS NULL)
        """,
    ),
    Invariant(
        "I6",
        "finished-has-nothing-open",
        "A finished generation has no open steps or attempts. A finished step has no open attempts.",
        f"""
        SELECT i.key, format('step %%s is %%s', s.seq, s.status)
        FROM engine_step s JOIN engine_instance i ON i.key = s.instance_id
        WHERE s.status IN ('running', 'waiting')
          AND (i.status IN {FINAL_SQL} OR s.generation < i.generation)
        UNION ALL
        SELECT i.key, format('step %%s attempt %%s is running', a.step_seq, a.number)
        FROM engine_attempt a JOIN engine_instance i ON i.key = a.instance_id
        LEFT JOIN engine_step s
            ON s.instance_id = a.instance_id AND s.generation = a.generation AND s.seq = a.step_seq
        WHERE a.status = 'running' AND (
            i.status IN {FINAL_SQL} OR a.generation < i.generation
            OR (a.phase = 'do' AND s.status IN ('complete', 'errored', 'cancelled'))
        )
        """,
    ),
    Invariant(
        "I6",
        "nothing-after-the-end",
        "No step or attempt of an instance starts or ends after the instance has ended.",
        """
        SELECT i.key, format('step %%s', s.seq)
        FROM engine_step s JOIN engine_instance i ON i.key = s.instance_id AND i.generation = s.generation
        WHERE greatest(s.started_at, s.finished_at) > i.finished_at + %(skew)s * interval '1 second'
        UNION ALL
        SELECT i.key, format('step %%s attempt %%s', a.step_seq, a.number)
        FROM engine_attempt a JOIN engine_instance i ON i.key = a.instance_id AND i.generation = a.generation
        WHERE greatest(a.started_at, a.finished_at) > i.finished_at + %(skew)s * interval '1 second'
        """,
    ),
    Invariant(
        "I10",
        "no-rollback-on-success",
        "A completed instance has no rollbacks.",
        """
        SELECT key, format('rollback is %%s', rollback) FROM engine_instance
        WHERE status = 'complete' AND rollback <> ''
        UNION ALL
        SELECT i.key, format('step %%s', a.step_seq)
        FROM engine_attempt a JOIN engine_instance i ON i.key = a.instance_id AND i.generation = a.generation
        WHERE i.status = 'complete' AND a.phase = 'rollback'
        """,
    ),
    Invariant(
        "I14",
        "paused-is-idle",
        "A paused instance has a pause time, and no owner or wake-up.",
        """
        SELECT key, 'owner, wake-up or time of the pause' FROM engine_instance
        WHERE status = 'paused' AND (owner IS NOT NULL OR wake_at IS NOT NULL OR paused_at IS NULL)
        """,
    ),
    Invariant(
        "I14",
        "pause-reasons-only-when-paused",
        "Why the engine paused an instance is kept only while it is paused, and with one that was ended while paused.",
        """
        SELECT key, status FROM engine_instance
        WHERE pause_reason IS NOT NULL AND status NOT IN ('paused', 'terminated')
        """,
    ),
    Invariant(
        "I10",
        "errors-only-at-ends",
        "An open instance has an error only while it is rolled back for it.",
        f"""
        SELECT key, status FROM engine_instance
        WHERE error IS NOT NULL AND rollback <> 'running' AND status NOT IN {FINAL_SQL}
        """,
    ),
    Invariant(
        "I14",
        "nothing-runs-while-paused",
        "No attempt is running while its instance is paused. If its worker died, the attempt is lost.",
        """
        SELECT i.key, format('step %%s attempt %%s', a.step_seq, a.number)
        FROM engine_instance i JOIN engine_attempt a ON a.instance_id = i.key
        WHERE i.status = 'paused' AND a.status = 'running'
        """,
    ),
    Invariant(
        "I14",
        "nothing-starts-while-paused",
        "No step or attempt starts while its instance is paused.",
        """
        SELECT i.key, format('step %%s', s.seq)
        FROM engine_instance i JOIN engine_step s ON s.instance_id = i.key AND s.generation = i.generation
        WHERE i.status = 'paused' AND s.started_at > i.paused_at + %(skew)s * interval '1 second'
        UNION ALL
        SELECT i.key, format('step %%s attempt %%s', a.step_seq, a.number)
        FROM engine_instance i JOIN engine_attempt a ON a.instance_id = i.key AND a.generation = i.generation
        WHERE i.status = 'paused' AND a.started_at > i.paused_at + %(skew)s * interval '1 second'
        """,
    ),
)
