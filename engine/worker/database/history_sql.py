"""The statements that read what cycles need: steps, attempts, events, and other instances."""

from __future__ import annotations

from engine.values.columns import microseconds
from engine.values.records import ATTEMPT, EVENT, STEP

# The stored size of the steps of each instance, without unpacking them.
HISTORY_SIZES = """
    SELECT s.instance_id,
        sum(100 + coalesce(pg_column_size(s.output), 0) + coalesce(pg_column_size(s.error), 0))::bigint
    FROM unnest(%(keys)s::bigint[], %(generations)s::integer[]) AS c(key, generation)
    JOIN engine_step s ON s.instance_id = c.key AND s.generation = c.generation
    GROUP BY s.instance_id
"""

HISTORY_STEPS = f"""
    SELECT s.instance_id, {STEP.read("s")}
    FROM unnest(%(keys)s::bigint[], %(generations)s::integer[]) AS c(key, generation)
    JOIN engine_step s ON s.instance_id = c.key AND s.generation = c.generation
    ORDER BY s.instance_id, s.seq
"""

# Attempts matter only while their step is open or being rolled back: they count towards its limits, or were left by a
# dead worker. Their errors matter only if a delay function has still to be called for the last one.
_WANTED_ERROR = (
    "CASE WHEN s.wake_at IS NULL AND (s.status = 'waiting' OR s.rollback = 'running') THEN a.error::text END"
)
HISTORY_ATTEMPTS = f"""
    SELECT a.instance_id, {ATTEMPT.read("a", error=_WANTED_ERROR)}
    FROM unnest(%(keys)s::bigint[], %(generations)s::integer[]) AS c(key, generation)
    JOIN engine_step s ON s.instance_id = c.key AND s.generation = c.generation
        AND (s.status IN ('running', 'waiting') OR s.rollback = 'running') AND s.kind = 'do'
    JOIN engine_attempt a ON a.instance_id = s.instance_id AND a.generation = s.generation
        AND a.step_seq = s.seq AND a.phase = CASE WHEN s.rollback = 'running' THEN 'rollback' ELSE 'do' END
    ORDER BY a.instance_id, a.step_seq, a.number
"""

# A page of the buffered events of each instance, oldest first, of some types or, if those are NULL, of all. A page ends
# after a number of events or of stored bytes: the events after it are not even unpacked. The first column is the number
# of bytes so far.
BUFFERED_EVENTS = f"""
    SELECT so_far, instance_id, {EVENT.read("page")}
    FROM (
        SELECT e.*, pg_column_size(e.payload) AS size,
            sum(pg_column_size(e.payload)) OVER (ORDER BY e.instance_id, e.key) AS so_far
        FROM unnest(%(keys)s::bigint[]) AS c(key)
        CROSS JOIN LATERAL (
            SELECT key, instance_id, type, payload, sent_by, received_at FROM engine_event
            WHERE instance_id = c.key AND state = 'buffered' AND key > %(after)s
              AND (%(types)s::text[] IS NULL OR type = ANY (%(types)s))
            ORDER BY key LIMIT %(limit)s
        ) e
    ) page
    WHERE so_far - size < %(bytes)s
    ORDER BY instance_id, key
"""


# The instance that a row names by workflow and id. The order makes a plan for an empty table use the index of both: the
# index of the Studio's lists would seem as good, but read all instances of the workflow.
def named(row: str, columns: str, name: str = "i") -> str:
    return f"""
        LATERAL (
            SELECT {columns}, id, parent_key, parent_generation, parent_step FROM engine_instance
            WHERE workflow = {row}.workflow AND id >= {row}.id ORDER BY id LIMIT 1
        ) {name} ON {name}.id = {row}.id"""


def is_child(name: str, *origin: str) -> str:
    return f"({name}.parent_key, {name}.parent_generation, {name}.parent_step) = ({', '.join(origin)})"


# The intended instance: if a step has started it, the child of that step and no other instance of that name.
def meant(row: str, key: str) -> str:
    return f"({row}.of_step IS NULL OR {is_child('i', key, f'{row}.of_generation', f'{row}.of_step')})"


# The outcomes of the instances that steps wait for. Outputs and errors are read only of those that have ended. Once a
# waiter is recorded, it means that instance, and no later one with the same name.
RELATIONS = f"""
    SELECT r.seq, i.status, CASE WHEN i.finished_at IS NOT NULL THEN i.output::text END,
        CASE WHEN i.finished_at IS NOT NULL THEN i.error::text END, {microseconds("i.finished_at")}, w.seq IS NOT NULL
    FROM json_to_recordset(%(wanted)s)
        AS r(seq int, workflow text, id text, of_generation int, of_step int)
    LEFT JOIN engine_waiter w ON w.waiter_id = %(key)s AND w.generation = %(generation)s AND w.seq = r.seq
    LEFT JOIN {named("r", "key, status, output, error, finished_at")}
        AND {meant("r", "%(key)s")} AND (w.seq IS NULL OR i.key = w.instance_id)
"""

# Until when steps sleep or back off.
WAKE_UPS = f"""
    SELECT seq, attempts, {microseconds("wake_at")} FROM engine_step
    WHERE instance_id = %(key)s AND generation = %(generation)s AND seq = ANY (%(seqs)s)
      AND kind IN ('do', 'sleep') AND (status = 'waiting' OR rollback = 'running') AND wake_at IS NOT NULL
    ORDER BY seq
"""
