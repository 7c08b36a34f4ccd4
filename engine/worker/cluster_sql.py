"""The statements of the broker. They run on its own connection, next to LISTEN, and none takes long."""

from engine.worker.limits_sql import PLACES
from engine.worker.sql import LIVE_SEATS, SEAT_SPACE

# What is due first of each workflow. A probe of the index for each: `min(wake_at) WHERE workflow = ANY(…)` would read
# every parked row.
FIRST = """
    SELECT row.wake_at
    FROM unnest(%(workflows)s::text[]) AS known (workflow)
    CROSS JOIN LATERAL (
        SELECT wake_at FROM engine_instance
        WHERE workflow = known.workflow AND wake_at IS NOT NULL AND owner IS NULL AND NOT isolated
        ORDER BY wake_at LIMIT %(places)s + 1
    ) AS row
"""
ISOLATED = """
    SELECT count(*) FROM (
        SELECT FROM engine_instance
        WHERE isolated AND owner IS NULL AND workflow = ANY(%(workflows)s::text[]) AND wake_at <= clock_timestamp()
        LIMIT %(isolated)s
    ) AS waiting
"""

# The same of workflows that have a limit: no more than there are free places.
FIRST_LIMITED = f"""
    SELECT row.wake_at FROM ({PLACES}) AS places CROSS JOIN LATERAL (
        SELECT wake_at FROM engine_instance
        WHERE workflow = places.name AND wake_at IS NOT NULL AND owner IS NULL AND NOT isolated
        ORDER BY wake_at LIMIT greatest(least(places.free, %(places)s + 1), 0)
    ) AS row
"""
ISOLATED_LIMITED = f"""
    SELECT count(*) FROM ({PLACES}) AS places CROSS JOIN LATERAL (
        SELECT FROM engine_instance
        WHERE isolated AND owner IS NULL AND workflow = places.name AND wake_at <= clock_timestamp()
        LIMIT greatest(least(places.alone, %(isolated)s), 0)
    ) AS waiting
"""


# What a cluster needs to know to decide whether a shift is missing, in one round trip: how many rows are due
# (no more are counted than there are places), how soon the next will be, whether ordinary tasks wait, and how many
# instances wait to run alone. A row that a dead worker holds is as good as due: the first shift takes it back. So is an
# end that others do not know of.
def _look(first: str, isolated: str, served: str) -> str:
    return f"""
    WITH clock AS MATERIALIZED (
        SELECT clock_timestamp() - %(patience)s * interval '1 second' AS late
    ), first AS ({first}), orphan AS (
        SELECT FROM engine_instance AS held
        WHERE held.owner IS NOT NULL AND held.owner <> ALL (ARRAY({LIVE_SEATS}))
          AND held.workflow = ANY({served})
        LIMIT 1
    ), debt AS (
        SELECT FROM engine_instance WHERE owes LIMIT 1
    )
    SELECT count(first.wake_at) FILTER (WHERE first.wake_at <= late) + (SELECT count(*) FROM orphan)
               + (SELECT count(*) FROM debt),
           extract(epoch FROM min(first.wake_at) FILTER (WHERE first.wake_at > late) - late)::float8,
           EXISTS (SELECT FROM django_q_ormq WHERE key = %(key)s AND lock <= clock_timestamp()),
           {isolated}
    FROM clock LEFT JOIN first ON true
    GROUP BY late
    """


LOOK = _look(FIRST, f"({ISOLATED})", "%(workflows)s::text[]")
LOOK_WITH_LIMITS = _look(
    f"{FIRST} UNION ALL {FIRST_LIMITED}",
    f"({ISOLATED}) + ({ISOLATED_LIMITED})",
    "%(workflows)s::text[] || %(limited)s::text[]",
)

# Takes the oldest tasks of this queue that no other cluster has, until `retry` passes without their end. In
# the order of the primary key, the only index there is: under a backlog it stops at the first rows.
CLAIM_TASKS = """
WITH free AS (
    SELECT id FROM django_q_ormq
    WHERE key = %(key)s AND lock <= clock_timestamp()
    ORDER BY id LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE django_q_ormq AS task SET lock = clock_timestamp() + %(retry)s * interval '1 second'
    FROM free WHERE task.id = free.id
    RETURNING task.id, task.payload
)
SELECT id, payload FROM claimed ORDER BY id
"""

# Queues a task and tells its clusters, in the caller's transaction. By the database's clock: a host whose
# clock runs ahead would hide its tasks from everybody else.
ENQUEUE_TASK = """
WITH task AS (
    INSERT INTO django_q_ormq (key, payload, lock) VALUES (%(key)s, %(payload)s, clock_timestamp())
    RETURNING id
)
SELECT id FROM task, pg_notify(%(channel)s, %(key)s)
"""

# Says that this cluster is there, and takes away those that have said nothing for long. Tells how soon it has to look:
# for a Schedule of django-q's that is this cluster's (those without a cluster's name are the default cluster's), or for
# a schedule of a workflow that it knows, which a task in another cluster's hands may not find.
BEAT = """
WITH gone AS (
    DELETE FROM engine_worker WHERE key IN (
        SELECT key FROM engine_worker
        WHERE seen_at < clock_timestamp() - interval '60 seconds' AND seat <> %(seat)s
        FOR UPDATE SKIP LOCKED
    )
)
INSERT INTO engine_worker (role, name, seat, workflows, slots, held, started_at, seen_at)
VALUES ('cluster', %(name)s, %(seat)s, %(workflows)s::text[], %(slots)s, 0, clock_timestamp(), clock_timestamp())
ON CONFLICT (seat) DO UPDATE
SET workflows = excluded.workflows, slots = excluded.slots, seen_at = excluded.seen_at
RETURNING (
    SELECT extract(epoch FROM min(due_at) - clock_timestamp())::float8 FROM (
        SELECT next_run FROM django_q_schedule
        WHERE repeats <> 0 AND (cluster = %(key)s OR (cluster IS NULL AND %(is_default)s))
        UNION ALL SELECT next_at FROM engine_schedule WHERE workflow = ANY(%(workflows)s::text[])
    ) AS planned (due_at)
)
"""

# Of clusters that start together one writes the Schedule rows that each of them wants there to be.
TAKE_UPKEEP = f"SELECT pg_advisory_xact_lock({SEAT_SPACE + 9}, 0)"

LEAVE = "DELETE FROM engine_worker WHERE seat = %(seat)s"

TELL = "SELECT pg_notify(%(channel)s, %(payload)s)"
