"""Pauses of workflows."""

from __future__ import annotations

from django.http import HttpResponse
from ninja import Router

from engine.status import documents, search
from engine.status.gathering import database_now
from engine.status.holds import all_paused_workflows, paused_workflows
from engine.steer import pauses
from engine.values.errors import UnknownWorkflowError
from studio.access.permissions import Verb, allowed
from studio.api.answers import answer
from studio.api.auth import ApiRequest, not_found
from studio.api.fields import Because, ResumeWorkflow
from studio.api.operation import reads, writes
from studio.api.schemas.workflows import (
    PausedWorkflowAnswer,
    PausedWorkflowsAnswer,
    ResumedWorkflow,
)

router = Router(tags=["Workflows"])


@reads(router, "/paused-workflows", PausedWorkflowsAnswer, summary="List the paused workflows")
def list_paused_workflows(request: ApiRequest) -> HttpResponse:
    """Workflows of which nothing goes on until they are resumed, and how many of their instances are held."""
    found = [one for one in all_paused_workflows() if allowed(request.auth, Verb.VIEW, one.name)]
    answered = {
        "paused_workflows": [documents.paused_workflow(one) for one in found],
        "counted_up_to": search.COUNTED,
        "now": database_now(),
    }
    return answer(answered)


@writes(
    router,
    "/workflows/{workflow:name}/pause",
    PausedWorkflowAnswer,
    action=pauses.PAUSE,
    summary="Pause a workflow",
)
def pause_workflow(request: ApiRequest, name: str, body: Because) -> HttpResponse:
    """None of its instances goes on until it is resumed; running steps end and are recorded.

    Starts, events and answers are accepted, timers go on, and so do children of other workflows. If it is already
    paused, nothing changes, and the answer is that pause.
    """
    try:
        pauses.pause(name, by=request.auth, reason=body.reason)
    except UnknownWorkflowError:
        raise not_found() from None
    (found,) = paused_workflows([name])
    return answer({"paused_workflow": documents.paused_workflow(found)})


@writes(
    router,
    "/workflows/{workflow:name}/resume",
    ResumedWorkflow,
    action=pauses.RESUME,
    summary="Resume a workflow",
)
def resume_workflow(request: ApiRequest, name: str, body: ResumeWorkflow) -> HttpResponse:
    """End its pause or, with `count`, release some of the held instances, the oldest first.

    A released instance goes on to its end. If the workflow is not paused, nothing changes.
    """
    try:
        done = pauses.resume(name, count=body.count, by=request.auth, reason=body.reason)
    except UnknownWorkflowError:
        raise not_found() from None
    return answer(documents.resumed_workflow(done))
