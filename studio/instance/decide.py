"""Decide what follows for a step whose attempts are used up, after a page that shows what each choice does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect

from engine.models import Instance, Step
from engine.models.step import exhausted_label
from engine.status.sentences.bidi import isolated
from engine.steer import decisions, lifecycle, restart
from engine.values.errors import (
    InstanceNotFoundError,
    InvalidValueError,
    LimitError,
    StepNotExhaustedError,
    StepNotFailedError,
    StepNotSkippableError,
)
from studio.access.permissions import Verb, allowed
from studio.forms.checked import Problem
from studio.forms.json_text import read_text
from studio.frame.guard import guard
from studio.frame.notes import note
from studio.frame.pieces import page
from studio.instance.actions import reason_of, who_did
from studio.instance.steps.failures import failure

LONGEST_SHOWN = 64_000  # characters of what was typed

Act = Callable[[Instance, Step], Instance]


class StalePageError(Exception):
    """The instance was restarted after the page was rendered."""


@guard(get=Verb.VIEW)
def decide(request: HttpRequest, name: str, id: str, seq: int) -> HttpResponse:
    """Show the step, its last error, and what can be decided."""
    return _page(request, *_step(name, id, seq))


@guard(post=Verb.OPERATE, action="retry_step")
def retry_step(request: HttpRequest, name: str, id: str, seq: int) -> HttpResponse:
    """Give it its attempts anew."""
    instance, step = _step(name, id, seq)
    by, reason = request.user, reason_of(request)

    def act(row: Instance, step: Step) -> Instance:
        return restart.retry_step(row, step.name, step.count, seq=step.seq, by=by, reason=reason)

    return _decide(request, instance, step, act, "Retrying")


@guard(post=Verb.OPERATE, action="fail_step")
def fail_step(request: HttpRequest, name: str, id: str, seq: int) -> HttpResponse:
    """Let it fail. A reason is required, for the audit trail."""
    instance, step = _step(name, id, seq)
    by, reason = request.user, reason_of(request)
    if not reason:
        return _page(request, instance, step, status=422, refused="Enter a reason to let it fail.", at="fail")

    def act(row: Instance, step: Step) -> Instance:
        return decisions.fail_step(row, step.name, step.count, seq=step.seq, by=by, reason=reason)

    return _decide(request, instance, step, act, "Failed")


@guard(post=Verb.OPERATE, action="skip_step", takes_payload=True)
def skip_step(request: HttpRequest, name: str, id: str, seq: int) -> HttpResponse:
    """Complete it with the output that was typed. A reason is required, for the audit trail."""
    instance, step = _step(name, id, seq)
    by, reason = request.user, reason_of(request)
    read = read_text(_typed(request), "output")
    if not read.is_good:
        text = f"Not skipped: {read.problems[0].message}"
        return _page(request, instance, step, status=422, refused=text, problems=read.problems, at="skip")
    if not reason:
        return _page(request, instance, step, status=422, refused="Enter a reason to skip it.", at="skip")

    def act(row: Instance, step: Step) -> Instance:
        where = {"seq": step.seq, "output": read.value}
        return decisions.skip_step(row, step.name, step.count, **where, by=by, reason=reason)

    return _decide(request, instance, step, act, "Skipped")


def _decide(request: HttpRequest, instance: Instance, step: Step, act: Act, done: str) -> HttpResponse:
    try:
        with transaction.atomic():
            _check_generation(request, instance)
            instance = act(instance, step)
    except InstanceNotFoundError:
        raise Http404 from None
    except StalePageError:
        text = who_did(instance, "It was restarted after you opened this page. Nothing was changed.")
        return _page(request, *_step(instance.workflow, instance.id, step.seq), status=409, refused=text)
    except (StepNotExhaustedError, StepNotFailedError, StepNotSkippableError) as error:
        text = who_did(instance, str(error))
        return _page(request, *_step(instance.workflow, instance.id, step.seq), status=409, refused=text)
    except (InvalidValueError, LimitError) as error:
        return _page(request, instance, step, status=422, refused=str(error), at="skip")
    note(request, f"{done} step {isolated(_label(step))} of {instance.id}, which is {instance.status}.")
    return HttpResponseRedirect(instance.get_absolute_url())


def _check_generation(request: HttpRequest, instance: Instance) -> None:
    """Lock the instance. Raises StalePageError if the page showed another generation."""
    if str(lifecycle.lock(instance).generation) != request.POST.get("generation", ""):
        raise StalePageError


def _step(name: str, id: str, seq: int) -> tuple[Instance, Step]:
    try:
        instance = Instance.objects.defer("params", "output", "error").get(workflow=name, id=id)
        return instance, Step.objects.of(instance).defer("output").get(seq=seq)
    except (Instance.DoesNotExist, Step.DoesNotExist):
        raise Http404 from None


def _page(
    request: HttpRequest,
    instance: Instance,
    step: Step,
    *,
    status: int = 200,
    refused: str = "",
    problems: Sequence[Problem] = (),
    at: str = "",
) -> HttpResponse:
    is_decidable = step.is_exhausted and instance.status == "paused"
    others = [one for one in Step.objects.of(instance).exhausted() if one.seq != step.seq]
    return page(
        request,
        "studio/instance/decide.html",
        status=status,
        instance=instance,
        step=step,
        label=_label(step),
        failure=failure(step.error),
        has_rollback=bool(_options(step).get("rollback")),
        is_decidable=is_decidable,
        not_skippable=decisions.why_not_skippable(instance, step),
        others=[(one, _label(one)) for one in others],
        at=at,
        typed=_typed(request)[:LONGEST_SHOWN],
        reason=reason_of(request),
        problems=problems,
        refused=refused,
        may_act=allowed(request.user, Verb.OPERATE, instance.workflow),
    )


def _typed(request: HttpRequest) -> str:
    return request.POST.get("output", "").replace("\r\n", "\n")


def _options(step: Step) -> dict[str, Any]:
    return step.options if isinstance(step.options, dict) else {}


def _label(step: Step) -> str:
    return exhausted_label(step)
