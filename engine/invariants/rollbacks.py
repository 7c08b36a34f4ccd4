"""Invariants of rollbacks: one at a time, in reverse order, to the end, and no new steps meanwhile."""

from __future__ import annotations

from engine.invariants.invariant import Invariant
from engine.values.states import FINAL_SQL

# A step to undo when its instance fails: it was started, and recorded with a rollback.
_UNDOABLE = "s.kind = 'do' AND s.attempts > 0 AND s.options -> 'rollback' IS NOT NULL"

INVARIANTS = (
    Invariant(
        "I10",
        "rollback-states-are-consistent",
        "An instance whose rollbacks are running is open and has its future status in ends_as. No other "
        "instance has.",
        f"""
        SELECT key, format('%%s, rollback %%s, ends as %%s', status, rollback, ends_as) FROM engine_instance
        WHERE (rollback = 'running') <> (ends_as <> '')
           OR (rollback = 'running') <> (rollback <> '' AND status NOT IN {FINAL_SQL})
           OR ends_as NOT IN ('', 'errored', 'terminated')
        """,
    ),
    Invariant(
        "I10",
        "rollbacks-are-complete",
        "A failed instance has undone every step that has a rollback, or its rollback is recorded as failed.",
        f"""
        SELECT i.key, format('step %%s is %%s, the instance %%s', s.seq, s.rollback, i.rollback)
        FROM engine_instance i JOIN engine_step s ON s.instance_id = i.key AND s.generation = i.generation
        WHERE {_UNDOABLE} AND s.rollback <> 'complete'
          AND (i.rollback = 'complete' OR i.rollback = '' AND i.status = 'errored')
        UNION ALL
        SELECT i.key, format('step %%s is %%s, the instance %%s', s.seq, s.rollback, i.rollback)
        FROM engine_instance i JOIN engine_step s ON s.instance_id = i.key AND s.generation = i.generation
        WHERE s.rollback = 'failed' AND i.rollback NOT IN ('failed', 'running')
           OR s.rollback = 'running' AND i.rollback <> 'running'
        """,
    ),
    Invariant(
        "I10",
        "rollbacks-have-a-function",
        "A step is rolled back only if it was started and recorded with a rollback.",
        f"""
        SELECT s.instance_id, format('step %%s', s.seq) FROM engine_step s
        WHERE s.rollback <> '' AND ({_UNDOABLE}) IS NOT TRUE
        UNION ALL
        SELECT a.instance_id, format('step %%s attempt %%s', a.step_seq, a.number)
        FROM engine_attempt a LEFT JOIN engine_step s
            ON s.instance_id = a.instance_id AND s.generation = a.generation AND s.seq = a.step_seq
        WHERE a.phase = 'rollback' AND coalesce(s.rollback, '') = ''
        """,
    ),
    Invariant(
        "I10",
        "rollbacks-in-reverse-order",
        "Steps are undone one at a time, in reverse order of their starts.",
        """
        SELECT earlier.instance_id, format('step %%s before step %%s', earlier.step_seq, later.seq)
        FROM engine_attempt earlier JOIN engine_step later
            ON later.instance_id = earlier.instance_id AND later.generation = earlier.generation
            AND later.seq > earlier.step_seq AND later.rollback <> ''
        LEFT JOIN engine_attempt last
            ON last.instance_id = later.instance_id AND last.generation = later.generation
            AND last.step_seq = later.seq AND last.phase = 'rollback' AND last.status = 'complete'
        WHERE earlier.phase = 'rollback'
          AND (last.number IS NULL OR last.finished_at > earlier.started_at + %(skew)s * interval '1 second')
        """,
    ),
    Invariant(
        "I10",
        "nothing-forward-after-a-rollback",
        "No step or attempt starts after the first rollback has started.",
        """
        WITH first AS (
            SELECT instance_id, generation, min(started_at) AS at FROM engine_attempt
            WHERE phase = 'rollback' GROUP BY instance_id, generation
        )
        SELECT first.instance_id, format('step %%s', s.seq)
        FROM first JOIN engine_step s USING (instance_id, generation)
        WHERE s.started_at > first.at + %(skew)s * interval '1 second'
        UNION ALL
        SELECT first.instance_id, format('step %%s attempt %%s', a.step_seq, a.number)
        FROM first JOIN engine_attempt a USING (instance_id, generation)
        WHERE a.phase = 'do' AND a.started_at > first.at + %(skew)s * interval '1 second'
        """,
    ),
    Invariant(
        "I10",
        "rollbacks-end-like-their-last-attempt",
        "The rollback of a step is complete if and only if its last attempt is. Attempts are numbered from "
        "1.",
        """
        SELECT s.instance_id, format('step %%s, rollback %%s', s.seq, s.rollback)
        FROM engine_step s LEFT JOIN engine_attempt a
            ON a.instance_id = s.instance_id AND a.generation = s.generation AND a.step_seq = s.seq
            AND a.phase = 'rollback'
        WHERE s.rollback <> ''
        GROUP BY s.instance_id, s.generation, s.seq
        HAVING (s.rollback = 'complete') <> coalesce(
                (array_agg(a.status ORDER BY a.number DESC))[1] = 'complete', false)
            OR count(a.number) <> coalesce(max(a.number), 0)
        """,
    ),
    Invariant(
        "I10",
        "budgets-of-rollbacks-are-kept",
        "A rollback fails at most max_attempts times after an operator last retried it.",
        """
        SELECT s.instance_id, format('step %%s', s.seq)
        FROM engine_step s JOIN engine_attempt a
            ON a.instance_id = s.instance_id AND a.generation = s.generation AND a.step_seq = s.seq
            AND a.phase = 'rollback'
        WHERE s.options -> 'rollback' IS NOT NULL
          AND a.number > coalesce((s.options -> 'rollback' ->> 'retried_after')::integer, 0)
          AND (a.status = 'timed_out' OR a.status = 'errored' AND a.error ->> 'type' NOT IN
            ('RollbackNotFoundError', 'WorkerLostError', 'DelayFunctionError'))
        GROUP BY s.instance_id, s.generation, s.seq, s.options -> 'rollback' ->> 'max_attempts'
        HAVING count(*) > (s.options -> 'rollback' ->> 'max_attempts')::integer
        """,
    ),
)
