"""Invariants of open instances: each has an owner, or something will wake it."""

from __future__ import annotations

from engine.invariants.invariant import Invariant
from engine.values.columns import is_held
from engine.values.states import FINAL_SQL

# Every table with times: the column with the instance's key, and the columns with times.
TIMES = {
    "engine_instance": (
        "key",
        ("created_at", "deadline_at", "finished_at", "paused_at", "started_at", "starts_at", "wake_at"),
    ),
    "engine_generation": ("instance_id", ("finished_at", "started_at")),
    "engine_step": ("instance_id", ("finished_at", "started_at", "wake_at")),
    "engine_attempt": ("instance_id", ("failed_at", "finished_at", "started_at")),
    "engine_event": ("instance_id", ("received_at",)),
    "engine_log": ("instance_id", ("at",)),
    "engine_audit": ("coalesce(instance_key, 0)", ("at",)),
    "engine_open_request": ("instance_id", ("expires_at", "opened_at")),
    "engine_ended_request": ("instance_id", ("ended_at",)),
    "engine_waiter": ("waiter_id", ("told_at",)),
    "engine_schedule": ("0", ("created_at", "last_planned_at", "next_at", "paused_at")),
    "engine_notice": ("coalesce(instance_key, 0)", ("at", "taken_until")),
    "engine_failure": ("0", ("counted_to", "decided_at", "first_seen", "ignored_until")),
    "engine_failure_count": ("0", ("hour",)),
    "engine_workflow_count": ("0", ("at",)),
    "engine_workflow_count_delta": ("0", ("at",)),
    "engine_workflow_span": ("0", ("at",)),
    "engine_bulk_job": ("0", ("aborted_at", "created_at", "finished_at", "paused_at")),
    "engine_bulk_item": ("coalesce(instance_key, 0)", ("at",)),
    "engine_code": ("0", ("first_seen_at", "last_seen_at")),
    "engine_worker": ("0", ("drained_at", "seen_at", "started_at")),
    "engine_workflow_pause": ("0", ("paused_at",)),
}


def _unreadable(table: str, key: str, columns: tuple[str, ...]) -> str:
    wrong = " OR ".join(f"{one} < '1970-01-01Z' OR {one} >= '9999-12-31Z'" for one in columns)
    return f"SELECT {key}, '{table}' FROM {table} WHERE {wrong}"


INVARIANTS = (
    Invariant(
        "I9",
        "no-early-start",
        "No instance runs before the time for which it was started.",
        """
        SELECT key, format('to start at %%s, started at %%s', starts_at, started_at) FROM engine_instance
        WHERE started_at < starts_at
           OR started_at IS NULL AND starts_at IS NOT NULL AND status = 'queued' AND wake_at < starts_at
        """,
    ),
    Invariant(
        "I7",
        "open-has-a-wake-up",
        "Every open instance that is not paused has a wake-up, or waits without a deadline for an event or "
        "another instance.",
        f"""
        SELECT i.key, concat_ws(' ', i.status, i.waiting_for) FROM engine_instance i
        WHERE i.wake_at IS NULL AND i.status <> 'paused' AND i.status NOT IN {FINAL_SQL}
          AND NOT (i.status = 'waiting' AND i.waiting_for = 'child' AND EXISTS (
            SELECT FROM engine_step s
            WHERE s.instance_id = i.key AND s.generation = i.generation
              AND s.kind = 'child' AND s.status = 'waiting'
        ))
          AND NOT (i.status = 'waiting' AND i.waiting_for = 'event' AND EXISTS (
            SELECT FROM engine_step s
            WHERE s.instance_id = i.key AND s.generation = i.generation
              AND s.kind IN ('event', 'request') AND s.status = 'waiting' AND s.wake_at IS NULL
        ))
        """,
    ),
    Invariant(
        "I7",
        "wake-ups-match-steps",
        "A parked instance wakes up with one of its steps, or at its deadline.",
        """
        SELECT i.key, format('wakes up at %%s', i.wake_at) FROM engine_instance i
        WHERE i.status = 'waiting' AND i.wake_at > clock_timestamp()
          AND i.wake_at IS DISTINCT FROM i.deadline_at
          AND NOT EXISTS (
            SELECT FROM engine_step s
            WHERE s.instance_id = i.key AND s.generation = i.generation
              AND (s.status = 'waiting' OR s.rollback = 'running') AND s.wake_at = i.wake_at
        )
        """,
    ),
    Invariant(
        "I7",
        "nothing-is-overdue",
        "Every due instance is claimed within the grace period, unless its workflow has reached "
        "max_running or is paused. This requires a worker that serves the workflow.",
        f"""
        SELECT key, format('due since %%s', wake_at) FROM engine_instance i
        WHERE owner IS NULL AND NOT {is_held("i")} AND wake_at < clock_timestamp() - %(grace)s * interval '1 second'
          AND workflow NOT IN (
            SELECT l.name FROM unnest(%(limited)s::text[], %(limits)s::integer[]) AS l(name, most)
            WHERE l.most <= (
                SELECT count(*) FROM engine_instance held
                WHERE held.workflow = l.name AND held.status IN ('running', 'waiting_for_pause')
            )
        )
        """,
    ),
    Invariant(
        "I7",
        "released-in-a-pause-of-the-workflow",
        "What was released in a pause is of the workflow that is paused, or a worker would claim another workflow's.",
        """
        SELECT i.key, format('pause of %%s', p.workflow) FROM engine_workflow_pause p
        JOIN engine_instance i ON i.released_in = p.key
        WHERE i.workflow <> p.workflow
        """,
    ),
    Invariant(
        "I7",
        "decisions-are-awaited",
        "An instance that has to be decided about is paused, or a worker is about to pause it: it never parks, "
        "and it has not ended.",
        f"""
        SELECT i.key, format('step %%s, %%s', s.seq, i.status)
        FROM engine_step s JOIN engine_instance i ON i.key = s.instance_id AND i.generation = s.generation
        WHERE s.kind = 'do' AND s.status = 'waiting' AND s.error IS NOT NULL
          AND (i.status = 'waiting' OR i.status IN {FINAL_SQL})
        """,
    ),
    # If new code has removed the wait, the event stays unused, and this query reports it.
    Invariant(
        "I7b",
        "no-wait-for-an-arrived-event",
        "No instance is parked on an event that has arrived.",
        """
        SELECT i.key, format('step %%s, event %%s', s.seq, e.key)
        FROM engine_event e
        JOIN engine_instance i ON i.key = e.instance_id
        JOIN engine_step s ON s.instance_id = i.key AND s.generation = i.generation
        WHERE e.state = 'buffered' AND i.status = 'waiting'
          AND (i.wake_at IS NULL OR i.wake_at > clock_timestamp())
          AND s.kind IN ('event', 'request') AND s.status = 'waiting' AND e.type = ANY (s.event_types)
          AND (s.wake_at IS NULL OR e.received_at <= s.wake_at)
        """,
    ),
    Invariant(
        "I12",
        "ids-are-unique",
        "No two instances of a workflow have the same ID.",
        """
        SELECT min(key), format('%%s times', count(*)) FROM engine_instance
        GROUP BY workflow, id HAVING count(*) > 1
        """,
    ),
    Invariant(
        "I12",
        "nothing-without-its-instance",
        "Every step, attempt, event, log line, request, generation and search value belongs to an existing "
        "instance.",
        """
        SELECT key, string_agg(DISTINCT found, ', ') FROM (
            SELECT instance_id, 'steps' FROM engine_step
            UNION ALL SELECT instance_id, 'attempts' FROM engine_attempt
            UNION ALL SELECT instance_id, 'events' FROM engine_event
            UNION ALL SELECT instance_id, 'log lines' FROM engine_log
            UNION ALL SELECT instance_id, 'open requests' FROM engine_open_request
            UNION ALL SELECT instance_id, 'ended requests' FROM engine_ended_request
            UNION ALL SELECT instance_id, 'generations' FROM engine_generation
            UNION ALL SELECT instance_id, 'search values' FROM engine_searchvalue
        ) AS part (key, found)
        WHERE NOT EXISTS (SELECT FROM engine_instance i WHERE i.key = part.key)
        GROUP BY key
        """,
    ),
    Invariant(
        "I15",
        "owner-and-lease-together",
        "An instance has an owner if and only if it is running, and then it also has a lease.",
        """
        SELECT key, status FROM engine_instance
        WHERE (owner IS NOT NULL) <> (status IN ('running', 'waiting_for_pause'))
           OR (owner IS NOT NULL AND wake_at IS NULL)
           OR (owner IS NOT NULL AND fence = 0)
        """,
    ),
    Invariant(
        "I15",
        "limits-are-kept",
        "Workers hold no more instances of a workflow than its max_running, unless the limit was lowered "
        "meanwhile.",
        """
        SELECT min(i.key), format('%%s of %%s %%s are held', count(*), l.most, l.name)
        FROM unnest(%(limited)s::text[], %(limits)s::integer[]) AS l(name, most)
        JOIN engine_instance i ON i.workflow = l.name AND i.owner IS NOT NULL
        GROUP BY l.name, l.most HAVING count(*) > l.most
        """,
    ),
    Invariant(
        "I15",
        "leases-are-swept",
        "An expired lease is reclaimed within the grace period.",
        """
        SELECT key, format('ran out at %%s', wake_at) FROM engine_instance
        WHERE owner IS NOT NULL AND wake_at < clock_timestamp() - %(grace)s * interval '1 second'
        """,
    ),
    # Python cannot represent other years: one such row would break every page or list that includes it.
    Invariant(
        "I13",
        "times-are-readable",
        "Every recorded time lies in the years 1970 to 9999.",
        " UNION ALL ".join(_unreadable(table, *of) for table, of in TIMES.items()),
    ),
)
