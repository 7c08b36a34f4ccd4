"""The statements of starting, sending and steering that the ORM cannot say, each with its why."""

# Several hints in one round trip.
NOTIFY = """
SELECT pg_notify(hint.channel, hint.payload) FROM unnest(%s::text[], %s::text[]) AS hint (channel, payload)
"""

# Starts any number of instances. The ORM's `ignore_conflicts` does not tell which rows it wrote, and knows no
# clock_timestamp(). Ids in use give no row, also when the other transaction commits while this one waits for
# it. In the order of their ids, so that two batches with ids in common cannot deadlock.
START = """
INSERT INTO engine_instance
    (workflow, id, status, params, tags, started_by, code, wake_at, deadline_at, created_at)
SELECT %(workflow)s, item.id, 'queued', item.params::json,
       ARRAY(SELECT json_array_elements_text(item.tags::json)), %(started_by)s, %(code)s,
       item.now, item.now + %(timeout)s::interval, item.now
FROM (
    SELECT *, clock_timestamp() AS now
    FROM unnest(%(ids)s::text[], %(params)s::text[], %(tags)s::text[]) AS given (id, params, tags)
    ORDER BY id
) AS item
ON CONFLICT (workflow, id) DO NOTHING
RETURNING id, key, wake_at, deadline_at, created_at
"""

# Stores an event, unless its dedup key was used before or the buffer is full. It runs while the sender holds
# the instance's row, so no other event of that instance can come between the count and the insert.
SEND = """
INSERT INTO engine_event (instance_id, type, payload, dedup_key, sent_by, received_at)
SELECT %(instance)s, %(type)s, %(payload)s::json, %(dedup_key)s, %(sent_by)s, clock_timestamp()
WHERE %(limit)s > (
    SELECT count(*) FROM (
        SELECT FROM engine_event WHERE instance_id = %(instance)s AND state = 'buffered' LIMIT %(limit)s
    ) AS buffered
)
ON CONFLICT (instance_id, dedup_key) WHERE dedup_key IS NOT NULL DO NOTHING
RETURNING key, received_at
"""
