"""The statements for clusters and tasks. The broker's run on its own connection; all are short."""

from __future__ import annotations

from engine.values.columns import moment

# Claims the oldest tasks of this queue that no other cluster holds, for `retry` seconds. In the order of the primary
# key, the only index: with a backlog it stops at the first rows.
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

# Queues a task and notifies its clusters, in the caller's transaction. Uses the database's clock: a host whose clock is
# ahead would hide its tasks from all others.
ENQUEUE_TASK = """
WITH task AS (
    INSERT INTO django_q_ormq (key, payload, lock) VALUES (%(key)s, %(payload)s, clock_timestamp())
    RETURNING id
)
SELECT id FROM task, pg_notify(%(channel)s, %(key)s)
"""

# Writes the row of this cluster or shift, deletes rows that have not been updated for long, and reads back whether it
# drains. A row that is written again, after an outage, keeps what the process remembers. The last column is NULL while
# the cluster has no row.
BEAT = """
WITH gone AS (
    DELETE FROM engine_worker WHERE key IN (
        SELECT key FROM engine_worker
        WHERE seen_at < clock_timestamp() - interval '60 seconds' AND worker_id <> %(worker_id)s
        FOR UPDATE SKIP LOCKED
    )
)
INSERT INTO engine_worker AS own (role, name, worker_id, workflows, slots, held, started_at, seen_at,
    cluster, cluster_id, version, code, memory, drained_at, drained_by, drain_reason)
VALUES (%(role)s, %(name)s, %(worker_id)s, %(workflows)s::text[], %(slots)s, %(held)s, clock_timestamp(),
    clock_timestamp(), %(cluster)s, %(cluster_id)s, %(version)s, %(code)s, %(memory)s,
    %(drained_at)s::timestamptz, %(drained_by)s, %(drain_reason)s)
ON CONFLICT (worker_id) DO UPDATE
SET workflows = excluded.workflows, slots = excluded.slots, held = excluded.held, memory = excluded.memory,
    seen_at = excluded.seen_at
RETURNING own.drained_at::text, own.drained_by, own.drain_reason,
    (SELECT c.drained_at IS NOT NULL FROM engine_worker c WHERE c.worker_id = %(cluster_id)s)
"""

# In how many seconds the next schedule of a workflow declared here is due.
NEXT_SCHEDULE = """
    SELECT extract(epoch FROM min(next_at) - clock_timestamp())::float8 FROM engine_schedule
    WHERE workflow = ANY(%(workflows)s::text[])
"""

LEAVE = "DELETE FROM engine_worker WHERE worker_id = %(worker_id)s RETURNING key"

# Sums of `Tally`: a worker soon adds them to the spans of charts.
COUNT = f"""
INSERT INTO engine_workflow_count_delta (workflow, at, what, bucket, amount)
SELECT t.workflow, {moment("t.at_us")}, t.what, t.bucket, t.amount
FROM json_to_recordset(%(rows)s) AS t(workflow text, at_us bigint, what text, bucket smallint, amount int)
RETURNING key
"""

TELL = "SELECT pg_notify(%(channel)s, %(payload)s)"
