"""The statements for starting, sending and steering that the ORM cannot express, and the reasons for their form."""

from engine.values.records import STEP
from engine.values.retry import DECISION, RETRIED_AFTER
from engine.values.states import FINAL_SQL, OPEN_STEPS_SQL

# Several notifications in one round trip.
NOTIFY = """
SELECT pg_notify(hint.channel, hint.payload) FROM unnest(%s::text[], %s::text[]) AS hint (channel, payload)
"""

# Starts any number of instances, at once or for later, and notifies. The ORM's `ignore_conflicts` does not return which
# rows it wrote, and has no clock_timestamp(). Ids in use give no row, even if the other transaction commits while this
# one waits for it.
# Inserted in the order of their ids, so that two batches with common ids cannot deadlock. In one statement, which
# outside of a transaction is one round trip and one commit; therefore the audit trail's rows, if somebody started the
# instances, are written here as well.
START = """
WITH written AS (
    INSERT INTO engine_instance
        (workflow, id, status, params, tags, started_by, code, retention, wake_at, deadline_at, created_at,
         starts_at)
    SELECT %(workflow)s, item.id, 'queued', item.params::json,
           ARRAY(SELECT json_array_elements_text(item.tags::json)), %(started_by)s, %(code)s,
           item.retention::json, greatest(item.now, item.at),
           greatest(item.now, item.at) + %(timeout)s::interval, item.now,
           CASE WHEN item.at > item.now THEN item.at END
    FROM (
        SELECT *, clock_timestamp() AS now
        FROM unnest(%(ids)s::text[], %(params)s::text[], %(tags)s::text[], %(retentions)s::text[],
                %(moments)s::timestamptz[])
            AS given (id, params, tags, retention, at)
        ORDER BY id
    ) AS item
    ON CONFLICT (workflow, id) DO NOTHING
    RETURNING id, key, wake_at, deadline_at, created_at, starts_at
), audited AS (
    INSERT INTO engine_audit
        (verb, actor, user_key, workflow, instance_id, instance_key, before, after, outcome, reason)
    SELECT 'start', %(started_by)s, %(user_key)s, %(workflow)s, id, key, '', 'queued', 'done', %(reason)s
    FROM written WHERE %(started_by)s <> '' ORDER BY key
), told AS MATERIALIZED (
    SELECT pg_notify('engine_wake', '') IS NULL,
           pg_notify('engine_changed', CASE WHEN length(keys) <= %(max_payload)s THEN keys ELSE '*' END) IS NULL
    FROM (SELECT string_agg(key::text, ',') AS keys FROM written) AS all_of_them WHERE keys IS NOT NULL
)
SELECT written.* FROM written LEFT JOIN told ON true
"""

# Stores an event, signals its instance, and wakes it or the worker that holds it. If the instance has finished, the
# dedup key was used before or the buffer is full, nothing is written and no row returned: the caller finds out which.
# The row is locked before the event gets its key, so keys are in the order of the commits.
#
# A parked instance is woken only for an event that one of its waits accepts; it finds the others when it wakes up for
# another reason. If the row has changed since this statement's snapshot (`place`), it may just have parked on a wait
# that the snapshot does not show, so it is woken.
SEND = """
WITH target AS MATERIALIZED (
    SELECT key, generation, status, owner, ctid AS place FROM engine_instance
    WHERE key = %(instance)s AND status <> ALL (%(refusing)s::text[]) FOR NO KEY UPDATE
), woken AS MATERIALIZED (
    SELECT key FROM target
    WHERE status = 'waiting' AND (
        NOT EXISTS (SELECT FROM engine_instance i WHERE i.key = target.key AND i.ctid = target.place)
        OR EXISTS (
            SELECT FROM engine_step s
            WHERE s.instance_id = target.key AND s.generation = target.generation
              AND s.kind IN ('event', 'request') AND s.status = 'waiting' AND %(type)s = ANY (s.event_types)
        )
    )
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
        wake_at = CASE WHEN i.key IN (SELECT key FROM woken) THEN clock_timestamp() ELSE i.wake_at END
    FROM sent WHERE i.key = %(instance)s
)
SELECT sent.key, sent.received_at, target.status,
    CASE WHEN target.key IN (SELECT key FROM woken) THEN pg_notify('engine_wake', '')
         WHEN target.owner IS NOT NULL THEN pg_notify('engine_wake', target.owner::text) END IS NULL,
    pg_notify('engine_changed', target.key::text) IS NULL
FROM sent CROSS JOIN target
"""

# Records an ended generation without passing its values through Python. Its params only if the next one has others.
KEEP_GENERATION = """
INSERT INTO engine_generation
    (instance_id, number, status, params, output, error, pause_reason, rollback, unreached, code, started_at,
     finished_at)
SELECT key, generation, status, CASE WHEN %(with_params)s THEN params END, output, error, pause_reason, rollback,
       unreached, code, started_at, finished_at
FROM engine_instance WHERE key = %(key)s
"""

# The next generation: due at once, and without the state of the last one. The fence grows, so that no worker of the
# last one can write. Its children must be notified that their steps are cancelled, and others that it runs again: the
# statement returns whether there are any. It is no longer tied if its parent already has the outcome, and so would not
# be notified. If it keeps steps, its handler sees the same start time as they did. If its workflow is not declared
# here, the deadline is as far away as it was at first.
NEXT_GENERATION = f"""
UPDATE engine_instance i SET
    generation = i.generation + 1, status = 'queued', wake_at = clock_timestamp(),
    output = NULL, error = NULL, pause_reason = NULL, rollback = '', ends_as = '', unreached = '{{}}', waiting_for = '',
    quarantined = false, released_in = NULL,
    started_at = CASE WHEN %(keeps)s THEN i.started_at END, finished_at = NULL, paused_at = NULL, starts_at = NULL,
    owner = NULL, fence = i.fence + 1, signals = i.signals + 1,
    notify_pending = i.notify_pending OR i.parent_key IS NOT NULL
        OR EXISTS (SELECT FROM engine_instance child WHERE child.parent_key = i.key)
        OR EXISTS (SELECT FROM engine_waiter w WHERE w.instance_id = i.key),
    params = coalesce(%(params)s::json, i.params),
    keys_from = CASE WHEN %(same_keys)s THEN coalesce(i.keys_from, i.generation) END,
    code = coalesce(%(code)s, i.code),
    deadline_at = clock_timestamp() + CASE WHEN %(code)s::text IS NOT NULL THEN %(timeout)s::interval
        ELSE i.deadline_at - coalesce((
            SELECT max(a.at) FROM engine_audit a
            WHERE a.instance_key = i.key AND a.verb = 'restart' AND a.outcome = 'done'
        ), i.starts_at, i.created_at) END,
    is_tied = i.is_tied AND EXISTS (
        SELECT FROM engine_instance p JOIN engine_step s ON s.instance_id = p.key AND s.generation = p.generation
        WHERE p.key = i.parent_key AND p.generation = i.parent_generation AND s.seq = i.parent_step
          AND p.status NOT IN {FINAL_SQL} AND s.status IN {OPEN_STEPS_SQL}
    )
WHERE i.key = %(key)s
RETURNING i.notify_pending
"""

# The steps that the next generation keeps, by number. Their deliveries are renumbered without gaps, as a replay
# expects. Attempts are not copied: they belong to the generation in `kept_from`.
_KEPT_STEPS = STEP.copied(
    delivery="CASE WHEN delivery IS NOT NULL THEN row_number() OVER (ORDER BY delivery NULLS LAST) END",
    rollback="''",
    kept_from="coalesce(kept_from, generation)",
)
KEEP_STEPS = f"""
INSERT INTO engine_step (instance_id, generation, {STEP.all()})
SELECT instance_id, generation + 1, {_KEPT_STEPS}
FROM engine_step WHERE instance_id = %(key)s AND generation = %(generation)s AND seq = ANY (%(seqs)s)
"""

# Failed steps that a retry continues, since steps inside them are kept. They look as they did before they failed, but
# have all their attempts: those of the last generation are not theirs.
_REOPENED_STEPS = STEP.copied(
    status="CASE WHEN kind = 'map' THEN 'running' ELSE 'waiting' END",
    delivery="NULL",
    options=f"""(
        SELECT json_object_agg(option.key, option.value) FROM json_each(options) AS option
        WHERE option.key NOT IN ('{RETRIED_AFTER}', '{DECISION}')
    )""",
    attempts="0",
    lost="0",
    wake_at="CASE WHEN kind = 'do' THEN clock_timestamp() END",
    output="NULL",
    error="NULL",
    finished_at="NULL",
    rollback="''",
    kept_from="NULL",
)
REOPEN_STEPS = f"""
INSERT INTO engine_step (instance_id, generation, {STEP.all()})
SELECT instance_id, generation + 1, {_REOPENED_STEPS}
FROM engine_step WHERE instance_id = %(key)s AND generation = %(generation)s AND seq = ANY (%(seqs)s)
"""

# Drops events that no wait will take. Their dedup keys become free, so that they can be sent again; if no step is kept,
# so do the keys of consumed events, which must be sent again. The answers to requests keep their keys, which identify
# who answered.
DROP_EVENTS = """
UPDATE engine_event SET
    state = CASE state WHEN 'buffered' THEN 'dropped' ELSE state END,
    dedup_key = CASE WHEN starts_with(type, %(answers)s) THEN dedup_key END
WHERE instance_id = %(key)s AND (
    state = 'buffered' AND (%(all)s OR starts_with(type, %(answers)s))
    OR state = 'consumed' AND %(all)s AND dedup_key IS NOT NULL AND NOT starts_with(type, %(answers)s)
)
"""

# Returns to the buffer what was consumed by waits that run again. A wait may have been kept from an earlier generation.
RETURN_EVENTS = """
UPDATE engine_event e SET state = 'buffered', consumed_by = NULL, consumed_generation = NULL
FROM engine_step s
WHERE s.instance_id = %(key)s AND s.generation = %(generation)s AND s.seq = ANY (%(seqs)s) AND s.kind = 'event'
  AND e.instance_id = s.instance_id AND e.state = 'consumed'
  AND e.consumed_generation = coalesce(s.kept_from, s.generation) AND e.consumed_by = s.seq
"""

# Children that end with a restart: those of open steps.
CHILDREN_THAT_END = f"""
SELECT count(*) FROM engine_instance c
JOIN engine_step s ON s.instance_id = c.parent_key AND s.generation = c.parent_generation AND s.seq = c.parent_step
WHERE c.parent_key = %(key)s AND c.parent_generation = %(generation)s AND c.is_tied AND c.ends_as = ''
  AND c.status NOT IN {FINAL_SQL} AND s.status IN {OPEN_STEPS_SQL}
"""

# Deletes everything of some instances except the audit trail; the caller has locked the rows. An instance that waits
# for one of them without being its parent finds it missing. A trigger deletes what the search has indexed.
REMOVE = """
WITH steps AS (DELETE FROM engine_step WHERE instance_id = ANY (%(keys)s)),
    attempts AS (DELETE FROM engine_attempt WHERE instance_id = ANY (%(keys)s)),
    logs AS (DELETE FROM engine_log WHERE instance_id = ANY (%(keys)s)),
    events AS (DELETE FROM engine_event WHERE instance_id = ANY (%(keys)s)),
    requests AS (DELETE FROM engine_open_request WHERE instance_id = ANY (%(keys)s)),
    ended AS (DELETE FROM engine_ended_request WHERE instance_id = ANY (%(keys)s)),
    waiters AS (DELETE FROM engine_waiter WHERE waiter_id = ANY (%(keys)s)),
    generations AS (DELETE FROM engine_generation WHERE instance_id = ANY (%(keys)s))
DELETE FROM engine_instance WHERE key = ANY (%(keys)s)
"""

# Instances that have not received this instance's outcome: the parent whose step is open, or another waiter.
NEEDED_BY = f"""
SELECT p.workflow, p.id
FROM engine_instance i JOIN engine_instance p ON p.key = i.parent_key AND p.generation = i.parent_generation
JOIN engine_step s ON s.instance_id = p.key AND s.generation = p.generation AND s.seq = i.parent_step
WHERE i.key = %(key)s AND i.is_tied AND p.status NOT IN {FINAL_SQL}
  AND s.status IN {OPEN_STEPS_SQL}
UNION ALL
SELECT p.workflow, p.id
FROM engine_waiter w JOIN engine_instance p ON p.key = w.waiter_id AND p.generation = w.generation
JOIN engine_step s ON s.instance_id = p.key AND s.generation = p.generation AND s.seq = w.seq
WHERE w.instance_id = %(key)s AND p.status NOT IN {FINAL_SQL} AND s.status = 'waiting'
LIMIT 1
"""

# Pauses a workflow, or finds that it is paused and changes nothing. Locks the row, so that it is still there.
PAUSE_WORKFLOW = """
INSERT INTO engine_workflow_pause AS pause (workflow, paused_at, paused_by, reason)
VALUES (%(workflow)s, clock_timestamp(), %(by)s, %(reason)s)
ON CONFLICT (workflow) DO UPDATE SET workflow = pause.workflow
RETURNING workflow, paused_at, paused_by, reason, released, xmax = 0
"""

# What only the pause of its workflow keeps from the workers.
_DUE_AND_HELD = """
    workflow = %(workflow)s AND owner IS NULL AND wake_at <= (SELECT clock_timestamp())
      AND released_in IS DISTINCT FROM %(pause)s
"""
COUNT_HELD = f"SELECT count(*) FROM engine_instance WHERE {_DUE_AND_HELD}"

# Releases the oldest of them, as claims count age. SKIP LOCKED: a sender holds a row, or a person terminates it.
RELEASE = f"""
WITH oldest AS (
    SELECT key FROM engine_instance WHERE {_DUE_AND_HELD}
    ORDER BY wake_at, key LIMIT %(count)s FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE engine_instance i SET released_in = %(pause)s FROM oldest WHERE i.key = oldest.key
RETURNING i.key
"""
