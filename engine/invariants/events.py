"""Invariants of events and the waits that consume them."""

from __future__ import annotations

from engine.invariants.invariant import Invariant

INVARIANTS = (
    Invariant(
        "I8",
        "events-go-to-waits",
        "A consumed event belongs to a completed wait that accepts its type.",
        """
        SELECT e.instance_id, format('event %%s', e.key)
        FROM engine_event e LEFT JOIN engine_step s
            ON s.instance_id = e.instance_id AND s.generation = e.consumed_generation AND s.seq = e.consumed_by
        WHERE e.state = 'consumed' AND (
            coalesce(s.kind, '') NOT IN ('event', 'request') OR s.status <> 'complete'
            OR e.type = ANY (s.event_types) IS NOT TRUE
        )
        """,
    ),
    Invariant(
        "I8",
        "waits-end-with-one-event",
        "A completed wait has consumed exactly one event and recorded it unchanged. Only a wait of an "
        "earlier generation may have lost its event to a restart.",
        """
        SELECT s.instance_id, format('step %%s, %%s events', s.seq, count(e.key))
        FROM engine_step s LEFT JOIN engine_event e
            ON e.instance_id = s.instance_id AND e.state = 'consumed'
            AND e.consumed_generation = coalesce(s.kept_from, s.generation) AND e.consumed_by = s.seq
        LEFT JOIN engine_instance i ON i.key = s.instance_id
        WHERE s.kind IN ('event', 'request') AND s.status = 'complete'
        GROUP BY s.instance_id, s.generation, s.seq, i.generation
        HAVING count(e.key) > 1 OR count(e.key) = 0 AND s.generation IS NOT DISTINCT FROM i.generation
            OR bool_or(s.output ->> 'type' <> e.type OR (s.output -> 'payload')::text <> e.payload::text)
        """,
    ),
    Invariant(
        "I8",
        "oldest-event-first",
        "No event is consumed while an older one of the same type, which the wait also accepts, is buffered.",
        """
        SELECT young.instance_id, format('event %%s before %%s', young.key, old.key)
        FROM engine_event old
        JOIN engine_event young ON young.instance_id = old.instance_id AND young.type = old.type
            AND young.key > old.key AND young.state = 'consumed'
        JOIN engine_instance i ON i.key = old.instance_id AND i.generation = young.consumed_generation
        WHERE old.state = 'buffered'
        """,
    ),
    Invariant(
        "I8",
        "event-states-are-consistent",
        "Every event is buffered, consumed or dropped, and has a consumer only if it is consumed.",
        """
        SELECT instance_id, format('event %%s is %%s', key, state) FROM engine_event
        WHERE (state = 'consumed') <> (consumed_by IS NOT NULL)
           OR (state = 'consumed' AND consumed_generation IS NULL)
           OR state NOT IN ('buffered', 'consumed', 'dropped')
        """,
    ),
    Invariant(
        "I8",
        "dedup-keys-are-unique",
        "No two events of an instance have the same dedup key.",
        """
        SELECT instance_id, format('%%s events', count(*)) FROM engine_event WHERE dedup_key IS NOT NULL
        GROUP BY instance_id, dedup_key HAVING count(*) > 1
        """,
    ),
    # A sender that commits late stores an event whose arrival time is before a deadline that has already passed.
    # The grace period allows for this.
    Invariant(
        "I8",
        "no-timeout-after-arrival",
        "No wait timed out if an event for it arrived before its deadline.",
        """
        SELECT s.instance_id, format('step %%s, event %%s', s.seq, e.key)
        FROM engine_step s JOIN engine_event e
            ON e.instance_id = s.instance_id AND e.type = ANY (s.event_types)
        JOIN engine_instance i ON i.key = s.instance_id AND i.generation = s.generation
        LEFT JOIN engine_step taker ON taker.instance_id = e.instance_id
            AND taker.generation = e.consumed_generation AND taker.seq = e.consumed_by
        WHERE s.kind IN ('event', 'request') AND s.status = 'errored' AND s.kept_from IS NULL
          AND e.received_at < s.started_at
            + ((s.error -> 'details' ->> 'timeout')::double precision - %(grace)s) * interval '1 second'
          AND (e.state = 'buffered' OR taker.generation = s.generation AND taker.delivery > s.delivery)
        """,
    ),
)
