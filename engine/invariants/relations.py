"""Invariants between an instance and the instances that it started or waits for."""

from __future__ import annotations

from engine.invariants.invariant import Invariant
from engine.values.states import FINAL_SQL

INVARIANTS = (
    Invariant(
        "I11",
        "one-child-per-call",
        "A step has started at most one child.",
        """
        SELECT parent_key, format('step %%s started %%s', parent_step, count(*)) FROM engine_instance
        WHERE parent_key IS NOT NULL
        GROUP BY parent_key, parent_generation, parent_step HAVING count(*) > 1
        """,
    ),
    Invariant(
        "I11",
        "children-have-steps",
        "Every child was started by a step of its parent, if the parent still exists.",
        """
        SELECT c.key, format('step %%s of #%%s', c.parent_step, c.parent_key) FROM engine_instance c
        JOIN engine_instance p ON p.key = c.parent_key
        LEFT JOIN engine_step s ON s.instance_id = c.parent_key AND s.generation = c.parent_generation
            AND s.seq = c.parent_step
        WHERE s.kind IS DISTINCT FROM 'child' OR c.depth <> p.depth + 1
        """,
    ),
    # A child that has ended may have been deleted.
    Invariant(
        "I11",
        "steps-have-their-own-children",
        "A step that waits for a child is the parent of that child, and no other instance has the child's "
        "ID.",
        """
        SELECT s.instance_id, format('step %%s: %%s/%%s is %%s', s.seq, s.options ->> 'workflow',
            s.options ->> 'id', CASE WHEN c.key IS NULL THEN 'missing' ELSE 'no child of it' END)
        FROM engine_step s
        LEFT JOIN engine_instance c ON c.workflow = s.options ->> 'workflow' AND c.id = s.options ->> 'id'
        WHERE s.kind = 'child' AND s.options ->> 'operation' IN ('run_workflow', 'spawn') AND CASE
            WHEN c.key IS NULL THEN s.status = 'waiting'
            ELSE (c.parent_key, c.parent_generation, c.parent_step)
                IS DISTINCT FROM (s.instance_id, coalesce(s.kept_from, s.generation), s.seq) END
        """,
    ),
    # The child may have been restarted since.
    Invariant(
        "I11",
        "results-match-children",
        "A step that waited for a child has recorded the outcome of that child.",
        """
        SELECT s.instance_id, format('step %%s is %%s, its child %%s', s.seq, s.status, c.status)
        FROM engine_instance c
        JOIN engine_step s ON s.instance_id = c.parent_key AND s.generation = c.parent_generation
            AND s.seq = c.parent_step
        WHERE c.is_tied AND c.generation = 1 AND (
            s.status = 'complete' AND (c.status <> 'complete' OR s.output::text IS DISTINCT FROM c.output::text)
            OR s.status = 'errored' AND c.status IS DISTINCT FROM s.error -> 'details' ->> 'status'
        )
        """,
    ),
    Invariant(
        "I11",
        "no-orphans",
        "A child that its parent no longer waits for ends within the grace period, unless it was left "
        "running or is being rolled back.",
        f"""
        SELECT c.key, format('step %%s of #%%s is %%s', s.seq, s.instance_id, s.status)
        FROM engine_instance c
        JOIN engine_step s ON s.instance_id = c.parent_key AND s.generation = c.parent_generation
            AND s.seq = c.parent_step
        LEFT JOIN engine_step above ON above.instance_id = s.instance_id AND above.generation = s.generation
            AND above.seq = s.parent
        WHERE c.is_tied AND c.status NOT IN {FINAL_SQL}
          AND c.ends_as = '' AND s.status = 'cancelled'
          AND s.finished_at < clock_timestamp() - %(grace)s * interval '1 second'
          AND NOT coalesce(above.kind = 'parallel' AND above.status = 'errored'
            AND above.options ->> 'on_failure' = 'leave', false)
        """,
    ),
    Invariant(
        "I11",
        "ends-are-reported",
        "No instance is parked for longer than the grace period on an instance that has ended.",
        """
        SELECT i.key, format('step %%s waits for %%s/%%s', s.seq, other.workflow, other.id)
        FROM engine_instance i
        JOIN engine_step s ON s.instance_id = i.key AND s.generation = i.generation
            AND s.kind = 'child' AND s.status = 'waiting'
        JOIN engine_instance other
            ON other.workflow = s.options ->> 'workflow' AND other.id = s.options ->> 'id'
        WHERE i.status = 'waiting' AND (i.wake_at IS NULL OR i.wake_at > clock_timestamp())
          AND other.finished_at < clock_timestamp() - %(grace)s * interval '1 second'
        """,
    ),
    Invariant(
        "I11",
        "notices-are-sent",
        "When an instance ends, everything that others need to learn from it is done within the grace "
        "period.",
        """
        SELECT key, status FROM engine_instance
        WHERE notify_pending AND finished_at < clock_timestamp() - %(grace)s * interval '1 second'
        """,
    ),
)
