"""Pause, resume, terminate, restart and delete instances: one engine call each."""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction
from django.http import HttpResponse
from ninja import Query, Router

from engine.models import Instance
from engine.status import documents
from engine.steer import decisions, deletion, lifecycle, wake_ups
from engine.steer import restart as restarting
from engine.values.unchanged import UNCHANGED
from studio.api.answers import answer, etag_of
from studio.api.auth import ApiRequest
from studio.api.fields import (
    Because,
    Decide,
    ReasonWanted,
    Restart,
    RestartFrom,
    Retry,
    Skip,
    Terminate,
    Wake,
)
from studio.api.operation import writes
from studio.api.operations.instances import ONE
from studio.api.operations.instances import router as instances
from studio.api.problems import ProblemError, WrongField
from studio.api.reading import check_match, instance_of, locked
from studio.api.schemas.instances import InstanceAnswer
from studio.api.schemas.steering import DeletedAnswer, RestartPlan, SteeredAnswer

router = Router(tags=["Steering"])

Act = Callable[[Instance], Instance]


@writes(
    router,
    f"{ONE}/pause",
    SteeredAnswer,
    action="pause",
    takes_match=True,
    gives=("ETag",),
    operation_id="pause_instance",
    summary="Pause an instance",
)
def pause(request: ApiRequest, name: str, id: str, body: Because) -> HttpResponse:
    """Running bodies end first and are recorded. Does nothing if there is nothing to pause."""
    return _steer(request, name, id, lambda row: lifecycle.pause(row, by=request.auth, reason=body.reason))


@writes(
    router,
    f"{ONE}/resume",
    SteeredAnswer,
    action="resume",
    takes_match=True,
    gives=("ETag",),
    operation_id="resume_instance",
    summary="Resume an instance",
)
def resume(request: ApiRequest, name: str, id: str, body: Because) -> HttpResponse:
    """Does nothing if there is nothing to resume."""
    return _steer(request, name, id, lambda row: lifecycle.resume(row, by=request.auth, reason=body.reason))


@writes(
    router,
    f"{ONE}/terminate",
    SteeredAnswer,
    action="terminate",
    takes_match=True,
    gives=("ETag",),
    operation_id="terminate_instance",
    summary="Terminate an instance",
)
def terminate(request: ApiRequest, name: str, id: str, body: Terminate) -> HttpResponse:
    """End it now, with the children that it waits for; with `rollback` after its steps are rolled back."""
    _require_reason(body.reason)
    return _steer(
        request,
        name,
        id,
        lambda row: lifecycle.terminate(row, rollback=body.rollback, by=request.auth, reason=body.reason),
    )


@writes(
    router,
    f"{ONE}/retry-now",
    SteeredAnswer,
    action="retry_now",
    takes_match=True,
    gives=("ETag",),
    summary="Retry now",
)
def retry_now(request: ApiRequest, name: str, id: str, body: Because) -> HttpResponse:
    """End the back-off of its steps: the next attempt starts now, with the same idempotency key."""
    return _steer(request, name, id, lambda row: wake_ups.retry_now(row, by=request.auth, reason=body.reason))


@writes(
    router,
    f"{ONE}/wake-now",
    SteeredAnswer,
    action="wake_now",
    takes_match=True,
    gives=("ETag",),
    summary="Wake now",
)
def wake_now(request: ApiRequest, name: str, id: str, body: Wake) -> HttpResponse:
    """End its sleeps, or the one that is named. Waits for events, answers and children are not affected."""
    return _steer(
        request,
        name,
        id,
        lambda row: wake_ups.wake_now(row, body.step, body.count, by=request.auth, reason=body.reason),
    )


@writes(
    router,
    f"{ONE}/retry-rollback",
    SteeredAnswer,
    action="retry_rollback",
    takes_match=True,
    gives=("ETag",),
    summary="Retry a failed rollback",
)
def retry_rollback(request: ApiRequest, name: str, id: str, body: Because) -> HttpResponse:
    """Give the failed rollback a new set of attempts."""
    return _steer(
        request, name, id, lambda row: lifecycle.retry_rollback(row, by=request.auth, reason=body.reason)
    )


@writes(
    router,
    f"{ONE}/accept-code",
    SteeredAnswer,
    action="accept_code",
    takes_match=True,
    gives=("ETag",),
    summary="Accept changed code",
)
def accept_code(request: ApiRequest, name: str, id: str, body: Because) -> HttpResponse:
    """Let it go on with the current code of its workflow."""
    return _steer(
        request, name, id, lambda row: lifecycle.accept_code(row, by=request.auth, reason=body.reason)
    )


@writes(
    router,
    f"{ONE}/restart",
    InstanceAnswer,
    action="restart",
    takes_match=True,
    gives=("ETag",),
    operation_id="restart_instance",
    summary="Restart an instance",
)
def restart(request: ApiRequest, name: str, id: str, body: Restart) -> HttpResponse:
    """Begin a new generation, from the start or from a step. Side effects repeat."""
    _require_reason(body.reason)
    with transaction.atomic():
        row = _matched(request, name, id)
        instance = restarting.restart(
            row,
            body.from_step,
            body.count,
            str(body.kind),
            params=body.params if "params" in body.model_fields_set else UNCHANGED,
            keys=body.keys,
            by=request.auth,
            reason=body.reason,
        )
    return answer({"instance": documents.instance(instance)}, headers={"ETag": etag_of(instance)})


@writes(
    router,
    f"{ONE}/retry-step",
    InstanceAnswer,
    action="retry_step",
    takes_match=True,
    gives=("ETag",),
    summary="Retry a failed step",
)
def retry_step(request: ApiRequest, name: str, id: str, body: Retry) -> HttpResponse:
    """Run the step again that ended the instance, in a new generation, or those whose used-up attempts paused it, in
    the same one. Idempotency keys stay."""
    with transaction.atomic():
        row = _matched(request, name, id)
        instance = restarting.retry_step(row, body.step, body.count, by=request.auth, reason=body.reason)
    return answer({"instance": documents.instance(instance)}, headers={"ETag": etag_of(instance)})


@writes(
    router,
    f"{ONE}/fail-step",
    SteeredAnswer,
    action="fail_step",
    takes_match=True,
    gives=("ETag",),
    summary="Let an exhausted step fail",
)
def fail_step(request: ApiRequest, name: str, id: str, body: Decide) -> HttpResponse:
    """The attempts of the step are used up and have paused the instance: its handler gets the last error."""
    _require_reason(body.reason)

    def act(row: Instance) -> Instance:
        return decisions.fail_step(row, body.step, body.count, by=request.auth, reason=body.reason)

    return _steer(request, name, id, act)


@writes(
    router,
    f"{ONE}/skip-step",
    SteeredAnswer,
    action="skip_step",
    takes_match=True,
    gives=("ETag",),
    summary="Supply the output of a step",
)
def skip_step(request: ApiRequest, name: str, id: str, body: Skip) -> HttpResponse:
    """Complete a step whose attempts are used up, or that waits for its next one, without running it. It is never
    rolled back."""
    _require_reason(body.reason)

    def act(row: Instance) -> Instance:
        step, count = body.step, body.count
        return decisions.skip_step(row, step, count, output=body.output, by=request.auth, reason=body.reason)

    return _steer(request, name, id, act)


@writes(router, f"{ONE}/restart/preview", RestartPlan, action="", summary="Preview a restart")
def preview_restart(request: ApiRequest, name: str, id: str, body: RestartFrom) -> HttpResponse:
    """What a restart would keep, run again and drop. Changes nothing."""
    plan = restarting.preview(instance_of(name, id), body.from_step, body.count, str(body.kind))
    return answer(documents.plan(plan))


@writes(
    instances,
    ONE,
    DeletedAnswer,
    action="delete",
    method="DELETE",
    takes_match=True,
    operation_id="delete_instance",
    summary="Delete an instance",
)
def delete(
    request: ApiRequest, name: str, id: str, body: Because, wanted: Query[ReasonWanted]
) -> HttpResponse:
    """Delete a finished instance with everything it recorded. Its audit trail stays.

    Give the reason in the address: many clients and proxies drop the body of a DELETE.
    """
    reason = _same(wanted.reason, body.reason)
    _require_reason(reason)
    with transaction.atomic():
        deletion.delete(_matched(request, name, id), by=request.auth, reason=reason)
    return answer({"deleted": {"workflow": name, "id": id}})


def _steer(request: ApiRequest, name: str, id: str, act: Act) -> HttpResponse:
    # Locked, so that the reported change is that of this call and not of a worker.
    with transaction.atomic():
        row = _matched(request, name, id)
        before = _state(row)
        instance = act(row)
        has_changed = _state(instance) != before
    document = {"instance": documents.instance(instance), "has_changed": has_changed}
    return answer(document, headers={"ETag": etag_of(instance)})


def _matched(request: ApiRequest, name: str, id: str) -> Instance:
    """Return the instance, locked, in the state that the request is meant for."""
    row = locked(name, id)
    check_match(request, row)
    return row


def _state(row: Instance) -> tuple[str, int, str]:
    return row.status, row.signals, row.code


def _same(in_address: str, in_body: str) -> str:
    """Return the reason, given once or twice alike."""
    if in_address and in_body and in_address != in_body:
        detail = "The address and the body have different reasons. Send one of them."
        wrong: list[WrongField] = [
            {"path": path, "code": "ambiguous", "message": detail} for path in ("?reason", "reason")
        ]
        raise ProblemError(422, "invalid_request", detail, errors=wrong)
    return in_address or in_body


def _require_reason(reason: str) -> None:
    if not reason.strip():
        detail = "This action requires a reason."
        wrong = {"path": "reason", "code": "required", "message": detail}
        raise ProblemError(422, "reason_required", detail, errors=[wrong])  # type: ignore[list-item]
