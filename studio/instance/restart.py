"""Restart an instance, after a page that shows what will happen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect

from engine.models import Instance
from engine.steer import lifecycle, restart
from engine.values.errors import (
    InstanceNotFoundError,
    KeysSpentError,
    RestartError,
    SecretKeyError,
    StepNotFailedError,
    StepNotFoundError,
)
from engine.values.unchanged import UNCHANGED
from studio.access.permissions import Verb, allowed
from studio.forms.checked import Problem
from studio.forms.zones import ZONES
from studio.frame.addresses import cursor
from studio.frame.guard import guard
from studio.frame.notes import note
from studio.frame.pieces import page
from studio.instance.actions import reason_of, who_did
from studio.instance.restart_params import TypedParams

RETRY = "retry"  # the step that ended the instance, with its idempotency key
LISTED = 100  # steps in each list, at most
CHOICES = 200  # steps to choose from


@dataclass(frozen=True, slots=True)
class Target:
    """The step to restart from, as in an address: `do:charge:1`, or `retry` for the failed one. Empty for the start."""

    kind: str = ""
    name: str = ""
    count: int = 1

    @classmethod
    def of(cls, text: str) -> Target:
        kind, _, rest = text[:300].replace("\0", "").partition(":")
        if text and not kind:
            kind = "?"  # invalid; only an empty text means the start
        name, _, count = rest.rpartition(":")
        return cls(kind, name, min(cursor(count) or 1, 2**31 - 1)) if name else cls(kind, rest)

    @property
    def arguments(self) -> dict[str, Any]:
        return {"from_step": self.name, "count": self.count, "kind": self.kind} if self.kind else {}

    @property
    def is_retry(self) -> bool:
        return self.kind == RETRY and not self.name

    @property
    def key(self) -> str:
        return RETRY if self.is_retry else f"{self.kind}:{self.name}:{self.count}" if self.kind else ""

    def preview(self, instance: Instance) -> restart.RestartPlan:
        return (
            restart.preview_retry(instance) if self.is_retry else restart.preview(instance, **self.arguments)
        )

    def act(self, instance: Instance, *, params: Any, keys: str, by: Any, reason: str) -> None:
        if self.is_retry:
            restart.retry_step(instance, by=by, reason=reason)
        else:
            params = UNCHANGED if self.kind else params
            restart.restart(instance, **self.arguments, params=params, keys=keys, by=by, reason=reason)

    def __str__(self) -> str:
        if self.is_retry:
            return "the failed step"
        return self.name if self.count == 1 else f"{self.name} #{self.count}"


class StalePageError(Exception):
    """The instance was restarted after the page was rendered."""


@guard(get=Verb.VIEW, post=Verb.OPERATE, action="restart", takes_payload=True)
def restart_page(request: HttpRequest, name: str, id: str) -> HttpResponse:
    """Preview a restart, or do it. A reason is required, for the audit trail."""
    try:
        instance = Instance.objects.defer("params", "output", "error").get(workflow=name, id=id)
        return _restart(request, instance) if request.method == "POST" else _preview(request, instance)
    except (Instance.DoesNotExist, InstanceNotFoundError):
        raise Http404 from None


def _restart(request: HttpRequest, instance: Instance) -> HttpResponse:
    target, reason = Target.of(request.POST.get("step", "")), reason_of(request)
    typed = TypedParams.of(request, instance)
    checked = typed.checked(instance)
    if not typed.is_sent:
        return _preview(request, instance, reason=reason, problems=typed.unread)
    if not checked.is_good:
        text = f"Not restarted: {checked.problems[0].message}"
        return _preview(request, instance, status=422, refused=text, reason=reason, problems=checked.problems)
    if not reason:
        return _preview(request, instance, status=422, refused="Enter a reason to restart it.")
    try:
        _restart_unless_stale(request, instance, target, reason, checked.value)
    except StalePageError:
        text = who_did(instance, "It was restarted after you opened this page. Nothing was changed.")
        return _preview(request, instance.refresh(), status=409, refused=text, reason=reason)
    except (KeysSpentError, RestartError, SecretKeyError, StepNotFailedError, StepNotFoundError) as error:
        return _preview(request, instance.refresh(), status=409, refused=str(error), reason=reason)
    where = f"from {target}" if target.kind else "from the start"
    note(request, f"Restarted {instance.id} {where} as generation {instance.generation}.")
    return HttpResponseRedirect(instance.get_absolute_url())


def _restart_unless_stale(
    request: HttpRequest, instance: Instance, target: Target, reason: str, params: Any
) -> None:
    """Restart the generation that the page showed. Two users who press at the same time restart it once."""
    with transaction.atomic():
        if str(lifecycle.lock(instance).generation) != request.POST.get("generation", ""):
            raise StalePageError
        target.act(instance, params=params, keys=_keys(request), by=request.user, reason=reason)


def _params(
    request: HttpRequest, typed: TypedParams, problems: Sequence[Problem], *, is_shown: bool
) -> dict[str, Any]:
    """Return what the template needs to show the form of the params, if they can be changed."""
    form = typed.shown
    if form is None or not is_shown:
        return {"json_form": None}
    return {
        "json_form": form,
        "control": form.controls(problems),
        "zones": ZONES,
        "form_id": "restart-form",
        "form_address": request.get_full_path(),
        "is_changed": typed.is_changed or not typed.is_sent,
    }


def _keys(request: HttpRequest) -> str:
    return restart.SAME if request.POST.get("keys") == restart.SAME else restart.NEW


def _is_failed(instance: Instance) -> bool:
    """Return whether a step has ended the instance and can run again with its key."""
    try:
        plan = restart.preview_retry(instance)
    except StepNotFailedError:
        return False
    return not (plan.refused or plan.keys_spent)


def _preview(
    request: HttpRequest,
    instance: Instance,
    *,
    status: int = 200,
    refused: str = "",
    reason: str = "",
    problems: Sequence[Problem] = (),
) -> HttpResponse:
    given = request.POST if request.method == "POST" else request.GET
    target, typed = Target.of(given.get("step", "")), TypedParams.of(request, instance)
    try:
        plan = target.preview(instance)
    except (StepNotFailedError, StepNotFoundError) as error:
        target, status, refused = Target(), max(status, 404), str(error)
        plan = restart.preview(instance)
    top = sorted([*plan.keeps, *plan.runs_again], key=lambda one: one.seq)
    choices = [(f"{one.kind}:{one.name}:{one.count}", one) for one in top[:CHOICES]]
    return page(
        request,
        "studio/instance/restart.html",
        status=status,
        instance=instance,
        target=target,
        plan=plan,
        choices=choices,
        is_far=bool(target.kind) and target.key not in dict(choices),
        is_cut=len(top) > CHOICES,
        may_retry=target.is_retry or _is_failed(instance),
        keys=_keys(request),
        **_params(request, typed, problems, is_shown=not target.kind),
        problems=problems,
        impossible=plan.refused or (plan.keys_spent if target.is_retry else ""),
        listed=LISTED,
        first=f":{LISTED}",
        refused=refused,
        reason=reason,
        may_act=allowed(request.user, Verb.OPERATE, instance.workflow),
    )
