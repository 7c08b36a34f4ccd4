"""Invariants of restarted instances: earlier generations are unchanged, and the current one knows what it keeps."""

from __future__ import annotations

from engine.invariants.invariant import Invariant
from engine.values.states import FINAL_SQL

INVARIANTS = (
    Invariant(
        "I13",
        "generations-are-kept",
        "Every earlier generation of an instance is recorded exactly once, with its end.",
        f"""
        SELECT i.key, format('generation %%s, kept %%s', i.generation, count(g.key))
        FROM engine_instance i LEFT JOIN engine_generation g ON g.instance_id = i.key
        GROUP BY i.key HAVING count(DISTINCT g.number) <> i.generation - 1 OR count(g.key) <> i.generation - 1
            OR min(g.number) < 1 OR max(g.number) >= i.generation
            OR bool_or(g.key IS NOT NULL AND (
                g.finished_at IS NULL OR g.status NOT IN {FINAL_SQL}
            ))
        """,
    ),
    Invariant(
        "I13",
        "earlier-generations-have-ended",
        "Nothing in an earlier generation starts or ends after its end, waits, or is being rolled back.",
        """
        SELECT g.instance_id, format('step %%s of generation %%s', s.seq, s.generation)
        FROM engine_generation g JOIN engine_step s ON s.instance_id = g.instance_id AND s.generation = g.number
        WHERE greatest(s.started_at, s.finished_at) > g.finished_at + %(skew)s * interval '1 second'
           OR s.rollback = 'running'
        UNION ALL
        SELECT g.instance_id, format('step %%s attempt %%s of generation %%s', a.step_seq, a.number, a.generation)
        FROM engine_generation g JOIN engine_attempt a ON a.instance_id = g.instance_id AND a.generation = g.number
        WHERE greatest(a.started_at, a.finished_at) > g.finished_at + %(skew)s * interval '1 second'
        UNION ALL
        SELECT i.key, format('step %%s of generation %%s waits', w.seq, w.generation)
        FROM engine_instance i JOIN engine_waiter w ON w.waiter_id = i.key AND w.generation <> i.generation
        UNION ALL
        SELECT i.key, format('request %%s of generation %%s is open', r.seq, r.generation)
        FROM engine_instance i JOIN engine_open_request r ON r.instance_id = i.key AND r.generation <> i.generation
        """,
    ),
    Invariant(
        "I13",
        "kept-steps-are-unchanged",
        "A step kept by a restart is identical to the same step in the generation in which it ran.",
        """
        SELECT s.instance_id, format('step %%s of generation %%s, from %%s', s.seq, s.generation, s.kept_from)
        FROM engine_step s LEFT JOIN engine_step ran
            ON ran.instance_id = s.instance_id AND ran.generation = s.kept_from AND ran.seq = s.seq
        WHERE s.kept_from IS NOT NULL AND (
            ran.seq IS NULL OR ran.kept_from IS NOT NULL OR s.kept_from >= s.generation
            OR (s.parent, s.kind, s.name, s.count, s.status, s.output::text, s.error::text, s.attempts, s.finished_at)
            IS DISTINCT FROM (ran.parent, ran.kind, ran.name, ran.count, ran.status, ran.output::text,
                ran.error::text, ran.attempts, ran.finished_at)
        )
        """,
    ),
    # The outcome of an atomic step may have been kept before its delivery.
    Invariant(
        "I13",
        "kept-steps-come-first",
        "Steps kept by a restart started and were delivered before all that run again, except those around them.",
        """
        SELECT instance_id, format('generation %%s, step %%s', generation, max(seq) FILTER (WHERE is_kept))
        FROM (
            SELECT s.instance_id, s.generation, s.seq, s.kept_from IS NOT NULL AS is_kept,
                CASE WHEN s.options ->> 'atomic' IS DISTINCT FROM 'true' THEN s.delivery END AS turn
            FROM engine_step s
            WHERE s.kept_from IS NOT NULL OR NOT EXISTS (
                SELECT FROM engine_step inner_step
                WHERE inner_step.instance_id = s.instance_id AND inner_step.generation = s.generation
                  AND inner_step.parent = s.seq AND inner_step.kept_from IS NOT NULL
            )
        ) AS step
        GROUP BY instance_id, generation
        HAVING max(seq) FILTER (WHERE is_kept) > min(seq) FILTER (WHERE NOT is_kept)
            OR max(turn) FILTER (WHERE is_kept) > min(turn) FILTER (WHERE NOT is_kept)
        """,
    ),
    # A restart from the beginning leaves consumed events with the generation that consumed them.
    Invariant(
        "I8",
        "restarts-lose-no-event",
        "After a restart from a step, no event is still consumed by a wait that the restart discarded.",
        """
        SELECT s.instance_id, format('event %%s, step %%s of generation %%s', e.key, s.seq, s.generation)
        FROM engine_audit a
        JOIN engine_step s ON s.instance_id = a.instance_key AND s.kind = 'event' AND s.status = 'complete'
            AND s.generation = (a.data ->> 'generation')::integer - 1
        LEFT JOIN engine_step kept ON kept.instance_id = s.instance_id AND kept.generation = s.generation + 1
            AND kept.seq = s.seq AND kept.kept_from IS NOT NULL
        JOIN engine_event e ON e.instance_id = s.instance_id AND e.state = 'consumed'
            AND e.consumed_generation = coalesce(s.kept_from, s.generation) AND e.consumed_by = s.seq
        WHERE a.verb = 'restart' AND a.outcome = 'done' AND a.data ->> 'from_step' IS NOT NULL AND kept.seq IS NULL
        """,
    ),
    Invariant(
        "I16",
        "restarts-are-audited",
        "Every restart has a row in the audit trail.",
        """
        SELECT i.key, format('generation %%s, %%s rows', i.generation, (
            SELECT count(*) FROM engine_audit a
            WHERE a.instance_key = i.key AND a.verb = 'restart' AND a.outcome = 'done'
        ))
        FROM engine_instance i
        WHERE i.generation > 1 AND i.generation - 1 <> (
            SELECT count(*) FROM engine_audit a
            WHERE a.instance_key = i.key AND a.verb = 'restart' AND a.outcome = 'done'
        )
        """,
    ),
)
