"""Bulk jobs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from studio.client import answers
from studio.client.call import Call, Pages, path_of, query_of
from studio.client.operations.making import PAGE, pages_of, post

Action = Literal["retry", "pause", "resume", "terminate", "restart"]
Outcome = Literal["open", "done", "skipped", "failed"]
Keys = Literal["new", "same"]
STOP_AFTER = 5


def preview_bulk_job(
    action: Action,
    query: str | None = None,
    *,
    instances: Iterable[tuple[str, str]] | None = None,
    rollback: bool | None = None,
    keys: Keys | None = None,
    idempotency_key: str | None = None,
) -> Call[answers.BulkPreview]:
    """Return what a bulk job would do now, to what a search finds or to instances: pairs of a workflow and an id."""
    body = _chosen(action, query, instances, rollback=rollback, keys=keys)
    return post("/bulk-jobs/preview", body, idempotency_key, part="preview")


def start_bulk_job(
    action: Action,
    query: str | None = None,
    *,
    instances: Iterable[tuple[str, str]] | None = None,
    rollback: bool | None = None,
    keys: Keys | None = None,
    at_once: int | None = None,
    ask_after: int | None = None,
    stop_after: int | None = STOP_AFTER,
    resume_workflows: bool = False,
    id: str | None = None,
    reason: str = "",
    idempotency_key: str | None = None,
) -> Call[answers.BulkJob]:
    """Do something to all that a search finds now, or to instances: pairs of a workflow and an id.

    `rollback` is of terminate, `keys` of restart; both actions need a reason. `at_once`: so many of its instances run
    at a time. The job pauses itself when `ask_after` are done or have failed, and after `stop_after` new failures.
    `resume_workflows` ends the pauses of their workflows first. Raises NotFoundError if one of the instances does not
    exist: then nothing is done.
    """
    body = _chosen(action, query, instances, rollback=rollback, keys=keys)
    body |= {"at_once": at_once, "ask_after": ask_after, "stop_after": stop_after}
    body |= {"resume_workflows": resume_workflows, "id": id, "reason": reason}
    return post("/bulk-jobs", body, idempotency_key, part="job")


def bulk_jobs() -> Pages[answers.BulkJob]:
    """Iterate over bulk jobs, newest first."""
    return pages_of("/bulk-jobs", "jobs")


def bulk_jobs_page(*, limit: int = PAGE, cursor: str | None = None) -> Call[answers.BulkJobsPage]:
    """Return one page of bulk jobs, with the time of the server and the cursor of the next page."""
    return Call("GET", "/bulk-jobs", query_of(limit=limit, cursor=cursor))


def bulk_job(job: str) -> Call[answers.BulkJob]:
    """Return a bulk job: how far it is, and how fast."""
    return Call("GET", _job(job), part="job")


def bulk_items(job: str, *, outcome: Outcome | None = None) -> Pages[answers.BulkItem]:
    """Iterate over the instances of a bulk job and what became of each, of all or with one outcome."""
    return pages_of(_job(job, "items"), "items", outcome=outcome)


def bulk_items_page(
    job: str, *, outcome: Outcome | None = None, limit: int = PAGE, cursor: str | None = None
) -> Call[answers.BulkItemsPage]:
    """Return one page of them, with the cursor of the next page."""
    return Call("GET", _job(job, "items"), query_of(outcome=outcome, limit=limit, cursor=cursor))


def pause_bulk_job(
    job: str, *, reason: str = "", idempotency_key: str | None = None
) -> Call[answers.BulkJob]:
    """Stop it after the current batch, until it is resumed."""
    return post(_job(job, "pause"), {"reason": reason}, idempotency_key, part="job")


def resume_bulk_job(
    job: str, *, reason: str = "", idempotency_key: str | None = None
) -> Call[answers.BulkJob]:
    """Continue after a pause, or after the job itself has failed."""
    return post(_job(job, "resume"), {"reason": reason}, idempotency_key, part="job")


def abort_bulk_job(
    job: str, *, reason: str = "", idempotency_key: str | None = None
) -> Call[answers.BulkJob]:
    """End it: what is done stays done, and the rest stays as it is."""
    return post(_job(job, "abort"), {"reason": reason}, idempotency_key, part="job")


def retry_failed_bulk_items(
    job: str, *, reason: str = "", idempotency_key: str | None = None
) -> Call[answers.BulkJob]:
    """Do the failed ones again."""
    return post(_job(job, "retry-failed"), {"reason": reason}, idempotency_key, part="job")


def _chosen(
    action: Action,
    query: str | None,
    instances: Iterable[tuple[str, str]] | None,
    *,
    rollback: bool | None,
    keys: Keys | None,
) -> dict[str, Any]:
    named = None if instances is None else [{"workflow": one[0], "id": one[1]} for one in instances]
    return {"action": action, "query": query, "instances": named, "rollback": rollback, "keys": keys}


def _job(job: str, *parts: str) -> str:
    return path_of("bulk-jobs", job, *parts)
