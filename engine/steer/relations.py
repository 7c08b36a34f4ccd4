"""The effects of an instance's end on others: its parent and its waiters are notified, its children end with it.

The statement that ends an instance, or cancels a step with a child, also marks the instance: a notice is pending (the
column is `notify_pending`). Pending notices are sent here, at once where possible, else by a worker
(`engine.worker.parent_notices`), so a crash in between loses none. No statement waits for a lock: a notice to a row
that another session holds stays pending.
"""

from __future__ import annotations

from typing import Any

from django.db import connection

from engine.steer.transitions import ENDED
from engine.values.states import FINAL_SQL, OPEN_STEPS_SQL

AT_ONCE = 500  # instances


# A child that its parent no longer waits for: the step is cancelled. Excluded are branches that the failure of a
# sibling leaves running, and children that are being rolled back: those finish first.
def _is_orphan(child: str) -> str:
    return f"""
    {child}.is_tied AND {child}.status NOT IN {FINAL_SQL} AND {child}.ends_as = '' AND EXISTS (
        SELECT FROM engine_step s
        LEFT JOIN engine_step above
            ON above.instance_id = s.instance_id AND above.generation = s.generation AND above.seq = s.parent
        WHERE s.instance_id = {child}.parent_key AND s.generation = {child}.parent_generation
          AND s.seq = {child}.parent_step AND s.status = 'cancelled'
          AND (above.kind = 'parallel' AND above.status = 'errored'
               AND above.options ->> 'on_failure' = 'leave') IS NOT TRUE
    )"""


# The rows are locked first and ended by a second statement: the snapshot of this one may be older than the last flush
# of a child's worker, and the steps of that flush would stay open.
ORPHANS = f"""
    SELECT child.key
    FROM engine_instance parent JOIN engine_instance child ON child.parent_key = parent.key
    WHERE parent.notify_pending AND (%(only)s::bigint[] IS NULL OR parent.key = ANY (%(only)s))
      AND {_is_orphan("child")}
    ORDER BY child.key LIMIT %(limit)s
    FOR NO KEY UPDATE OF child SKIP LOCKED
"""

# A child that must still be ended.
ORPHAN_OF = f"""
    SELECT child.workflow, child.id FROM engine_instance child
    WHERE child.parent_key = %(key)s AND {_is_orphan("child")}
    LIMIT 1
"""

# Terminate them. Each then has pending notices of its own.
END_ORPHANS = f"""
    WITH ending AS (
        SELECT child.key, child.generation, child.owner, child.workflow, child.id, child.status,
            parent.workflow AS parent_workflow, parent.id AS parent_id, parent.status AS parent_status
        FROM engine_instance child JOIN engine_instance parent ON parent.key = child.parent_key
        WHERE child.key = ANY (%(keys)s::bigint[]) AND child.status NOT IN {FINAL_SQL}
    ), trail AS (
        INSERT INTO engine_audit (verb, actor, user_key, workflow, instance_id, instance_key, before, after,
            outcome, reason)
        SELECT 'terminate', '', '', workflow, id, key, status, 'terminated', 'done',
            format('Its parent %%s/%%s %%s.', parent_workflow, parent_id, CASE
                WHEN parent_status IN {FINAL_SQL} THEN 'is ' || parent_status
                ELSE 'no longer waits for it' END)
        FROM ending
    ), {ENDED}
    SELECT key, pg_notify('engine_changed', key::text) IS NULL,
        CASE WHEN owner IS NOT NULL THEN pg_notify('engine_wake', owner::text) IS NULL END
    FROM ended
"""

# Notify the parents, and clear the mark of those with nothing left to report.
#
# marked   `place` shows whether the snapshot has the locked version of the row. If not, more of its steps may have been
#          cancelled than the snapshot shows, so it keeps its mark.
# parents  that wait: the others check for themselves when they start.
SETTLE = f"""
    WITH marked AS MATERIALIZED (
        SELECT i.key, i.ctid AS place, i.is_tied AND i.status IN {FINAL_SQL} AS has_news,
            i.parent_key, i.parent_generation
        FROM engine_instance i
        WHERE i.notify_pending AND (%(only)s::bigint[] IS NULL OR i.key = ANY (%(only)s))
        ORDER BY i.key LIMIT %(limit)s
        FOR NO KEY UPDATE OF i SKIP LOCKED
    ), parents AS MATERIALIZED (
        SELECT p.key
        FROM (SELECT DISTINCT parent_key, parent_generation FROM marked WHERE has_news) d
        JOIN engine_instance p ON p.key = d.parent_key AND p.generation = d.parent_generation
        WHERE p.status NOT IN {FINAL_SQL}
        ORDER BY p.key
        FOR NO KEY UPDATE OF p SKIP LOCKED
    ), done AS (
        SELECT d.key FROM marked d
        LEFT JOIN engine_instance parent ON parent.key = d.parent_key AND parent.generation = d.parent_generation
            AND parent.status NOT IN {FINAL_SQL}
        WHERE EXISTS (SELECT FROM engine_instance i WHERE i.key = d.key AND i.ctid = d.place)
          AND NOT EXISTS (
            SELECT FROM engine_instance child WHERE child.parent_key = d.key AND {_is_orphan("child")}
        ) AND (
            NOT d.has_news OR parent.key IS NULL OR d.parent_key IN (SELECT key FROM parents)
        )
    )
    UPDATE engine_instance i SET
        notify_pending = i.notify_pending AND NOT one.is_done,
        signals = i.signals + one.is_told::integer,
        wake_at = CASE WHEN one.is_told AND i.status = 'waiting' THEN clock_timestamp() ELSE i.wake_at END
    FROM (
        SELECT key, bool_or(is_done) AS is_done, bool_or(is_told) AS is_told
        FROM (
            SELECT key, true, false FROM done UNION ALL SELECT key, false, true FROM parents
        ) AS either (key, is_done, is_told)
        GROUP BY key
    ) AS one
    WHERE i.key = one.key
    RETURNING i.key, one.is_done, CASE
        WHEN NOT one.is_told THEN NULL
        WHEN i.status = 'waiting' THEN pg_notify('engine_wake', '') IS NULL
        WHEN i.owner IS NOT NULL THEN pg_notify('engine_wake', i.owner::text) IS NULL END
"""

# The rows of waiters that need work: the other instance has ended and this end has not been reported to the waiter, or
# it was deleted, or the wait is over.
_NOTES = f"""
    engine_waiter w
    LEFT JOIN engine_instance i ON i.key = w.instance_id
    LEFT JOIN engine_step s ON s.instance_id = w.waiter_id AND s.generation = w.generation AND s.seq = w.seq
    WHERE (i.key IS NULL OR s.status IS DISTINCT FROM 'waiting'
           OR i.status IN {FINAL_SQL} AND w.told_at IS DISTINCT FROM i.finished_at)
"""

# Notify each waiter of an ended instance once; it then reads the outcome itself. Until it has, that instance must not
# be deleted, so the row stays. Delete the row when the wait is over, or when the other instance is gone anyway.
TELL_WAITERS = f"""
    WITH over AS MATERIALIZED (
        SELECT w.waiter_id, w.generation, w.seq, s.status IS NOT DISTINCT FROM 'waiting' AS waits, i.finished_at
        FROM {_NOTES} AND (%(only)s::bigint[] IS NULL OR w.instance_id = ANY (%(only)s))
        ORDER BY w.waiter_id, w.generation, w.seq LIMIT %(limit)s
        FOR UPDATE OF w SKIP LOCKED
    ), waiting AS MATERIALIZED (
        SELECT p.key, p.owner
        FROM (SELECT DISTINCT waiter_id FROM over WHERE waits) o JOIN engine_instance p ON p.key = o.waiter_id
        ORDER BY p.key
        FOR NO KEY UPDATE OF p SKIP LOCKED
    ), forgotten AS (
        DELETE FROM engine_waiter w USING over o
        WHERE w.waiter_id = o.waiter_id AND w.generation = o.generation AND w.seq = o.seq
          AND (NOT o.waits OR o.finished_at IS NULL AND o.waiter_id IN (SELECT key FROM waiting))
    ), told AS (
        UPDATE engine_waiter w SET told_at = o.finished_at FROM over o
        WHERE w.waiter_id = o.waiter_id AND w.generation = o.generation AND w.seq = o.seq
          AND o.waits AND o.finished_at IS NOT NULL AND o.waiter_id IN (SELECT key FROM waiting)
    )
    UPDATE engine_instance i SET
        signals = i.signals + 1,
        wake_at = CASE WHEN i.status = 'waiting' THEN clock_timestamp() ELSE i.wake_at END
    FROM waiting w
    WHERE i.key = w.key
    RETURNING i.key, CASE
        WHEN i.status = 'waiting' THEN pg_notify('engine_wake', '') IS NULL
        WHEN w.owner IS NOT NULL THEN pg_notify('engine_wake', w.owner::text) IS NULL END
"""

# Most instances have no relations. The statements above took a fifth of the time of a restart to find nothing.
SETTLE_WITHOUT_RELATIONS = """
    UPDATE engine_instance i SET notify_pending = false
    WHERE i.key = %(key)s AND i.parent_key IS NULL
      AND NOT EXISTS (SELECT FROM engine_instance child WHERE child.parent_key = i.key)
      AND NOT EXISTS (SELECT FROM engine_waiter w WHERE w.instance_id = i.key)
    RETURNING i.key
"""

# Whether there is anything to do: for sweeps, and for rows that were locked a moment ago.
PENDING = f"""
    SELECT EXISTS (SELECT FROM engine_instance WHERE notify_pending) OR EXISTS (SELECT FROM {_NOTES})
"""


# The instances that end with an instance: the children that its steps wait for, and theirs.
TIED = f"""
    WITH RECURSIVE family AS (
        SELECT key, generation FROM engine_instance WHERE key = %(key)s
        UNION ALL
        SELECT child.key, child.generation
        FROM family f
        JOIN engine_instance child ON child.parent_key = f.key AND child.parent_generation = f.generation
        JOIN engine_step s ON s.instance_id = f.key AND s.generation = f.generation AND s.seq = child.parent_step
        WHERE child.is_tied AND child.status NOT IN {FINAL_SQL} AND s.status IN {OPEN_STEPS_SQL}
    )
    SELECT key FROM family WHERE key <> %(key)s
"""


def tied_to(key: int) -> list[int]:
    """Return the keys of the open instances that end with this one."""
    return [tied for (tied,) in _ask(TIED, key=key)]


def settle(key: int) -> None:
    """Send this instance's notices in the caller's transaction, which holds its row. Notices to locked rows are left
    to workers.
    """
    if _ask(SETTLE_WITHOUT_RELATIONS, key=key):
        return
    keys = [key]
    while orphans := _ask(ORPHANS, only=keys):
        keys += [orphan for (orphan,) in orphans]
        _ask(END_ORPHANS, keys=[orphan for (orphan,) in orphans])
    _ask(TELL_WAITERS, only=keys)
    _ask(SETTLE, only=keys)


def _ask(statement: str, **values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"limit": AT_ONCE, **values})
        return list(cursor.fetchall())
