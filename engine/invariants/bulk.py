"""Invariants of bulk jobs. Of older ones, items may already be deleted (`engine.jobs.removal`)."""

from __future__ import annotations

from engine.invariants.invariant import Invariant

_RECENT = "job.created_at > now() - interval '30 days'"

INVARIANTS = (
    Invariant(
        "I20",
        "bulk-jobs-count-their-items",
        "A bulk job counts its items by outcome.",
        f"""
        SELECT 0::bigint, format('%%s counts %%s of %%s', job.id, job.done, found.done)
        FROM engine_bulk_job job CROSS JOIN LATERAL (
            SELECT count(*) AS total, count(*) FILTER (WHERE outcome = 'done') AS done,
                count(*) FILTER (WHERE outcome = 'skipped') AS skipped,
                count(*) FILTER (WHERE outcome = 'failed') AS failed
            FROM engine_bulk_item item WHERE item.job_id = job.key
        ) AS found
        WHERE {_RECENT} AND (job.total, job.done, job.skipped, job.failed)
            <> (found.total, found.done, found.skipped, found.failed)
        """,
    ),
    Invariant(
        "I20",
        "finished-bulk-jobs-have-nothing-open",
        "A bulk job is finished only if none of its items is open.",
        f"""
        SELECT 0::bigint, format('%%s of %%s', item.position, job.id)
        FROM engine_bulk_job job JOIN engine_bulk_item item ON item.job_id = job.key AND item.outcome = 'open'
        WHERE {_RECENT} AND job.finished_at IS NOT NULL
        """,
    ),
    Invariant(
        "I20",
        "bulk-items-have-their-instances",
        "An item that was done, or that is of a job that does something to instances, names its instance.",
        """
        SELECT 0::bigint, format('%%s of %%s', item.position, job.id)
        FROM engine_bulk_job job JOIN engine_bulk_item item ON item.job_id = job.key
        WHERE item.instance_key IS NULL AND (item.outcome = 'done' OR job.action <> 'start')
        """,
    ),
)
