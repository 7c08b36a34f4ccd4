"""Bulk jobs: one action on many instances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpResponse
from django.urls import reverse
from ninja import Query, Router

from engine import bulk
from engine.bulk import BulkAction
from engine.jobs import document, steering
from engine.jobs.naming import named
from engine.models import BulkJob
from studio.access.denied_audit import Subject
from studio.access.permissions import Verb, allowed
from studio.api.answers import answer
from studio.api.auth import ApiRequest
from studio.api.bulk_fields import ItemsWanted, JobsWanted, PreviewBulk, StartBulk
from studio.api.fields import Because
from studio.api.operation import reads, writes
from studio.api.problems import ProblemError, WrongField
from studio.api.reading import patience, seen_names
from studio.api.schemas.bulk_jobs import (
    BulkItemsAnswer,
    BulkJobAnswer,
    BulkJobsAnswer,
    BulkPreviewAnswer,
)

router = Router(tags=["Bulk jobs"])

_ALL = "/bulk-jobs"
_ONE = f"{_ALL}/{{job:job}}"
NEED_REASON = (BulkAction.TERMINATE, BulkAction.RESTART)  # as for one instance


@reads(router, _ALL, BulkJobsAnswer, summary="List bulk jobs")
def list_bulk_jobs(request: ApiRequest, wanted: Query[JobsWanted]) -> HttpResponse:
    """Bulk jobs, newest first: those all of whose instances the token may see."""
    with patience():
        return answer(document.page_of_jobs(wanted.limit, wanted.cursor, seen_names(request.auth)))


@writes(
    router,
    f"{_ALL}/preview",
    BulkPreviewAnswer,
    action="",
    summary="Preview a bulk job",
)
def preview_bulk_job(request: ApiRequest, body: PreviewBulk) -> HttpResponse:
    """What it would do now: to how many instances the action applies, and why not to the others. Nothing is changed."""
    with patience():
        found = bulk.preview(body.action, **_chosen(request, body))
    return answer({"preview": document.preview(found)})


def _of_all(names: Mapping[str, Any]) -> Subject:
    """Return what a start is about: no workflow in particular."""
    return Subject("", data={"bulk": ""})


@writes(
    router,
    _ALL,
    BulkJobAnswer,
    action=steering.START,
    about=_of_all,
    status=201,
    gives=("Location",),
    summary="Start a bulk job",
)
def start_bulk_job(request: ApiRequest, body: StartBulk) -> HttpResponse:
    """Do something to many instances, in the background. The set is fixed now: what fails later does not belong to it.

    If a named instance does not exist, or the token may not act on it, nothing is done to any of them.
    """
    if body.action in NEED_REASON and not body.reason.strip():
        rule = f'The action "{body.action}" requires a reason.'
        raise ProblemError(422, "reason_required", rule, errors=[_wrong("reason", "required", rule)])
    job = bulk.start(
        body.action,
        at_once=body.at_once,
        ask_after=body.ask_after,
        stop_after=body.stop_after,
        resume_workflows=body.resume_workflows,
        id=body.id,
        by=request.auth,
        reason=body.reason,
        **_chosen(request, body),
    )
    where = reverse("studio:api-read-bulk-job", kwargs={"job": job.id})
    return answer({"job": document.job(job)}, 201, {"Location": where})


@reads(router, _ONE, BulkJobAnswer, summary="Read a bulk job")
def read_bulk_job(request: ApiRequest, job: str) -> HttpResponse:
    """How far it is, and how fast."""
    return answer({"job": document.job(_find(request, job))})


@reads(router, f"{_ONE}/items", BulkItemsAnswer, summary="List the instances of a bulk job")
def list_bulk_items(request: ApiRequest, job: str, wanted: Query[ItemsWanted]) -> HttpResponse:
    """What became of each of its instances, in the order in which they were started."""
    after = 0 if wanted.cursor is None else int(wanted.cursor)
    return answer(document.page_of_items(_find(request, job).id, wanted.outcome, wanted.limit, after))


def _steers(act: str, action: str, summary: str) -> Any:
    return writes(router, f"{_ONE}/{act}", BulkJobAnswer, action=action, about=_of_one, summary=summary)


def _of_one(names: Mapping[str, Any]) -> Subject:
    is_known = BulkJob.objects.filter(id=names["job"]).exists()
    return Subject("", data={"bulk": names["job"]}) if is_known else Subject(None)


@_steers("pause", steering.PAUSE, "Pause a bulk job")
def pause_bulk_job(request: ApiRequest, job: str, body: Because) -> HttpResponse:
    """It stops after the current batch. Does nothing if there is nothing to pause."""
    return _steer(request, job, body, bulk.pause)


@_steers("resume", steering.RESUME, "Resume a bulk job")
def resume_bulk_job(request: ApiRequest, job: str, body: Because) -> HttpResponse:
    """It goes on after a pause, or after it has failed itself. Does nothing if there is nothing to resume."""
    return _steer(request, job, body, bulk.resume)


@_steers("abort", steering.ABORT, "Abort a bulk job")
def abort_bulk_job(request: ApiRequest, job: str, body: Because) -> HttpResponse:
    """End it: what is done stays done, and the rest stays as it is. Does nothing if it has ended."""
    return _steer(request, job, body, bulk.abort)


@_steers("retry-failed", steering.RETRY_FAILED, "Retry what failed in a bulk job")
def retry_failed_bulk_items(request: ApiRequest, job: str, body: Because) -> HttpResponse:
    """Do the failed ones again. Does nothing if none has failed, or it was aborted."""
    return _steer(request, job, body, bulk.retry_failed)


def _steer(request: ApiRequest, job: str, body: Because, act: Callable[..., bulk.Job]) -> HttpResponse:
    done = act(_find(request, job).id, by=request.auth, reason=body.reason)
    return answer({"job": document.job(done)})


def _find(request: ApiRequest, job: str) -> bulk.Job:
    """Return a job all of whose instances the sender may see. Raises BulkJobNotFoundError."""
    return bulk.get(job, workflows=seen_names(request.auth))


def _chosen(request: ApiRequest, body: PreviewBulk) -> dict[str, Any]:
    """Return which instances and how, as the engine takes it. Raises ProblemError and InstanceNotFoundError."""
    if (body.query is None) == (body.instances is None):
        rule = "Send either a query or instances."
        raise ProblemError(422, "invalid_request", rule, errors=[_wrong("query", "either_or", rule)])
    names = seen_names(request.auth)
    if names is not None:
        names = [name for name in names if allowed(request.auth, Verb.OPERATE, name)]
    how = {"rollback": body.rollback, "keys": body.keys, "workflows": names}
    if body.instances is None:
        return {"query": body.query, **how}
    return {"instances": named([(one.workflow, one.id) for one in body.instances], names), **how}


def _wrong(path: str, code: str, message: str) -> WrongField:
    return {"path": path, "code": code, "message": message}
