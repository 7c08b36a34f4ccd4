"""Workflows, and starting their instances."""

from __future__ import annotations

from django.http import HttpResponse
from ninja import Router

from engine.declare.registry import workflows as registry
from engine.status import documents, search
from engine.status.catalog import workflows_of
from engine.status.gathering import database_now
from engine.steer import launch
from studio.access.permissions import visible
from studio.api.answers import answer, etag_of
from studio.api.auth import ApiRequest, not_found
from studio.api.fields import StartBatch, StartWithReason
from studio.api.operation import reads, writes
from studio.api.problems import ProblemError
from studio.api.reading import location_of, sees_all
from studio.api.schemas.instances import BatchAnswer, InstanceAnswer
from studio.api.schemas.workflows import WorkflowAnswer, WorkflowsAnswer

router = Router(tags=["Workflows"])

MOST = 100  # instances in a batch


@reads(router, "/workflows", WorkflowsAnswer, summary="List the workflows")
def list_workflows(request: ApiRequest) -> HttpResponse:
    """Workflows in the code, and those that only have instances, with their schemas, schedules and counts."""
    names = visible(request.auth, search.workflow_names())
    now = database_now()
    answered = {
        "workflows": workflows_of(names, now),
        "counted_up_to": search.COUNTED,
        # Of other tokens, the search might read the whole table.
        "last_start_at": search.last_start_at() if sees_all(request.auth) else None,
        "now": now,
    }
    return answer(answered)


@reads(router, "/workflows/{workflow:name}", WorkflowAnswer, summary="Read a workflow")
def read_workflow(request: ApiRequest, name: str) -> HttpResponse:
    """A workflow with the schema of its params, and its schedules."""
    if name not in search.workflow_names():
        raise not_found()
    (found,) = workflows_of([name], database_now())
    return answer({"workflow": found, "schedules": found["schedules"]})


@writes(
    router,
    "/workflows/{workflow:name}/instances",
    InstanceAnswer,
    action="start",
    status=201,
    gives=("ETag", "Location"),
    operation_id="start_instance",
    summary="Start an instance",
)
def start(request: ApiRequest, name: str, body: StartWithReason) -> HttpResponse:
    """Validate the params and start an instance. The answer is 201 when it is committed."""
    if name not in registry:
        raise not_found()
    instance = launch.start(
        registry[name],
        body.params,
        id=body.id,
        tags=body.tags,
        retention=body.retention,
        at=body.at,
        by=request.auth,
        reason=body.reason,
    )
    headers = {"Location": location_of(instance), "ETag": etag_of(instance)}
    return answer({"instance": documents.instance(instance)}, 201, headers)


@writes(
    router,
    "/workflows/{workflow:name}/instances/batch",
    BatchAnswer,
    action="start",
    operation_id="start_instances",
    summary="Start up to 100 instances",
)
def start_batch(request: ApiRequest, name: str, body: StartBatch) -> HttpResponse:
    """Start the valid ones in one statement. Each of `errors` names an item by its index."""
    if name not in registry:
        raise not_found()
    if len(body.items) > MOST:
        detail = f"A batch has {MOST} items at most, not {len(body.items)}."
        raise ProblemError(
            422,
            "limit",
            detail,
            errors=[{"path": "items", "code": "limit", "message": detail}],
            facts={"value": len(body.items), "limit": MOST},
        )
    done = launch.start_many(registry[name], body.items, by=request.auth, reason=body.reason)
    created = [documents.instance(one) for one in done.created]
    return answer({"created": created, "errors": list(done.errors)})
