"""The statements of starting, sending and steering that the ORM cannot say, each with its why."""

# Several hints in one round trip.
NOTIFY = """
SELECT pg_notify(hint.channel, hint.payload) FROM unnest(%s::text[], %s::text[]) AS hint (channel, payload)
"""

# Starts any number of instances, and says so. The ORM's `ignore_conflicts` does not tell which rows it wrote, and knows
# no clock_timestamp(). Ids in use give no row, also when the other transaction commits while this one waits for it. In
# the order of their ids, so that two batches with ids in common cannot deadlock. All in one statement, which outside
# of a transaction is one round trip and one commit.
START = """
WITH written AS (
    INSERT INTO engine_instance
        (workflow, id, status, params, tags, started_by, code, retention, wake_at, deadline_at, created_at)
    SELECT %(workflow)s, item.id, 'queued', item.params::json,
           ARRAY(SELECT json_array_elements_text(item.tags::json)), %(started_by)s, %(code)s,
           item.retention::json, item.now, item.now + %(timeout)s::interval, item.now
    FROM (
        SELECT *, clock_timestamp() AS now
        FROM unnest(%(ids)s::text[], %(params)s::text[], %(tags)s::text[], %(retentions)s::text[])
            AS given (id, params, tags, retention)
        ORDER BY id
    ) AS item
    ON CONFLICT (workflow, id) DO NOTHING
    RETURNING id, key, wake_at, deadline_at, created_at
), told AS MATERIALIZED (
    SELECT pg_notify('engine_wake', '') IS NULL,
           pg_notify('engine_changed', CASE WHEN length(keys) <= %(max_payload)s THEN keys ELSE '*' END) IS NULL
    FROM (SELECT string_agg(key::text, ',') AS keys FROM written) AS all_of_them WHERE keys IS NOT NULL
)
SELECT written.* FROM written LEFT JOIN told ON true
"""

# Stores an event, signals its instance and wakes it, or the worker that has it. Nothing is written, and no row comes
# back, if the instance has finished, the dedup key was used before or the buffer is full: the caller finds out which.
# The row lock comes before the event's key, so keys are in the order of the commits.
SEND = """
WITH target AS MATERIALIZED (
    SELECT key, status, owner FROM engine_instance
    WHERE key = %(instance)s AND status <> ALL (%(refusing)s::text[]) FOR NO KEY UPDATE
), sent AS (
    INSERT INTO engine_event (instance_id, type, payload, dedup_key, sent_by, received_at)
    SELECT target.key, %(type)s, %(payload)s::json, %(dedup_key)s, %(sent_by)s, clock_timestamp()
    FROM target
    WHERE %(limit)s > (
        SELECT count(*) FROM (
            SELECT FROM engine_event WHERE instance_id = %(instance)s AND state = 'buffered' LIMIT %(limit)s
        ) AS buffered
    )
    ON CONFLICT (instance_id, dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING
    RETURNING key, received_at
), signalled AS (
    UPDATE engine_instance i SET
        signals = i.signals + 1,
        wake_at = CASE WHEN i.status = 'waiting' THEN clock_timestamp() ELSE i.wake_at END
    FROM sent WHERE i.key = %(instance)s
)
SELECT sent.key, sent.received_at, target.status,
    CASE WHEN target.status = 'waiting' THEN pg_notify('engine_wake', '')
         WHEN target.owner IS NOT NULL THEN pg_notify('engine_wake', target.owner::text) END IS NULL,
    pg_notify('engine_changed', target.key::text) IS NULL
FROM sent CROSS JOIN target
"""
