"""What no fault may ever leave in the tables: each query finds violations, so each must find nothing."""

from __future__ import annotations

import psycopg

STEPS = "engine_step s JOIN engine_instance i ON i.key = s.instance_id AND i.generation = s.generation"
OF_STEP = "a.instance_id = s.instance_id AND a.generation = s.generation AND a.step_seq = s.seq"

QUERIES = {
    "a completed step was attempted again": f"""
        SELECT s.instance_id, s.name FROM engine_step s JOIN engine_attempt a ON {OF_STEP}
        JOIN engine_attempt later ON later.instance_id = a.instance_id AND later.generation = a.generation
            AND later.step_seq = a.step_seq AND later.number > a.number
        WHERE a.status = 'complete'
    """,
    "the attempts of a step are not numbered 1 to its count": f"""
        SELECT s.instance_id, s.name, s.attempts, array_agg(a.number ORDER BY a.number)
        FROM engine_step s LEFT JOIN engine_attempt a ON {OF_STEP}
        WHERE s.kind = 'do'
        GROUP BY s.instance_id, s.generation, s.seq
        HAVING count(a.number) <> s.attempts OR coalesce(max(a.number), 0) <> s.attempts
    """,
    "a step and its last attempt disagree": f"""
        SELECT s.instance_id, s.name, s.status FROM engine_step s
        WHERE s.kind = 'do' AND (s.status = 'complete') <> EXISTS (
            SELECT FROM engine_attempt a WHERE {OF_STEP} AND a.status = 'complete')
    """,
    "a step lost more or fewer attempts than it says": f"""
        SELECT s.instance_id, s.name, s.lost FROM engine_step s
        WHERE s.lost <> (SELECT count(*) FROM engine_attempt a WHERE {OF_STEP} AND a.status = 'lost')
    """,
    "something of a finished instance is open": f"""
        SELECT i.key, s.name, s.status, a.status FROM {STEPS} LEFT JOIN engine_attempt a ON {OF_STEP}
        WHERE i.status IN ('complete', 'errored', 'terminated')
          AND (s.status IN ('running', 'waiting') OR a.status = 'running')
    """,
    "a finished instance has an owner or a wake-up": """
        SELECT key FROM engine_instance WHERE status IN ('complete', 'errored', 'terminated')
          AND (owner IS NOT NULL OR wake_at IS NOT NULL)
    """,
    "nothing will ever wake an instance": """
        SELECT key, status FROM engine_instance
        WHERE wake_at IS NULL AND (status = 'queued' OR waiting_for IN ('sleep', 'retry'))
    """,
    "an instance waits for an event that is there": f"""
        SELECT i.key, e.type FROM {STEPS}
        JOIN engine_event e ON e.instance_id = i.key AND e.state = 'buffered' AND e.type = ANY (s.event_types)
        WHERE i.status = 'waiting' AND s.kind = 'event' AND s.status = 'waiting'
          AND (s.wake_at IS NULL OR e.received_at <= s.wake_at)
          AND (i.wake_at IS NULL OR i.wake_at > clock_timestamp())
    """,
    "an event was consumed by something else than a completed wait for it": """
        SELECT e.key FROM engine_event e LEFT JOIN engine_step s ON s.instance_id = e.instance_id
            AND s.generation = e.consumed_generation AND s.seq = e.consumed_by
        WHERE e.state = 'consumed'
          AND (s.kind IS DISTINCT FROM 'event' OR s.status <> 'complete' OR e.type <> ALL (s.event_types))
    """,
    "a completed wait consumed no event": """
        SELECT s.instance_id, s.name FROM engine_step s
        WHERE s.kind = 'event' AND s.status = 'complete' AND NOT EXISTS (
            SELECT FROM engine_event e WHERE e.instance_id = s.instance_id
              AND e.consumed_generation = s.generation AND e.consumed_by = s.seq)
    """,
    "a younger event was consumed before an older one of its type": """
        SELECT young.key FROM engine_event young JOIN engine_event old
            ON old.instance_id = young.instance_id AND old.type = young.type AND old.key < young.key
        JOIN engine_instance i ON i.key = old.instance_id
        WHERE young.state = 'consumed' AND old.state = 'buffered'
    """,
    "two outcomes of an instance have one delivery number": """
        SELECT instance_id, delivery FROM engine_step WHERE delivery IS NOT NULL
        GROUP BY instance_id, generation, delivery HAVING count(*) > 1
    """,
    "a held instance has no lease": """
        SELECT key FROM engine_instance WHERE owner IS NOT NULL AND wake_at IS NULL
    """,
}


def violations(connection: psycopg.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Return what is wrong, by its sentence; an empty dict is what every test wants."""
    found = {sentence: connection.execute(query).fetchall() for sentence, query in QUERIES.items()}
    return {sentence: rows for sentence, rows in found.items() if rows}
