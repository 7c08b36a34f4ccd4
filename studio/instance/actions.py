"""Actions on an instance. Each view calls the engine once and reports what happened."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django_htmx.http import retarget

from engine.declare.registry import workflows as registry
from engine.models import Audit, Instance
from engine.status.sentences.bidi import isolated
from engine.status.sentences.sentence import quoted
from engine.steer import deletion, events, lifecycle, notes, wake_ups
from engine.values.errors import (
    DedupConflictError,
    InstanceFinishedError,
    InstanceNeededError,
    InstanceNotFinishedError,
    InstanceNotFoundError,
    InstancePausedError,
    LimitError,
    NothingToRetryError,
    NothingToWakeError,
    RepriseError,
    RollbackNotFailedError,
    StepExhaustedError,
)
from engine.values.states import Action, InstanceStatus, allows
from studio.access.permissions import Verb
from studio.forms.tokens import token_of
from studio.frame.guard import guard
from studio.frame.notes import note
from studio.frame.pieces import HtmxRequest, flash, frame_of
from studio.instance.event_form import check_event, event_without_secrets
from studio.instance.live import InstanceView
from studio.instance.tabs import tab_before
from studio.instance.views import show_instance
from studio.instances.address import list_address

LONGEST_REASON = 2_000
_DONE = {
    "start": "started",
    "pause": "paused",
    "resume": "resumed",
    "terminate": "terminated",
    "send_event": "event sent",
    "answer": "answered",
    "accept_code": "new code accepted",
    "retry_now": "retried early",
    "wake_now": "woken early",
    "retry_rollback": "rollback retried",
    "retry_step": "step retried",
    "fail_step": "step failed",
    "skip_step": "step skipped",
    "restart": "restarted",
}


@guard(post=Verb.OPERATE, action="pause")
def pause(request: HtmxRequest, name: str, id: str) -> HttpResponse:
    return _steer(request, name, id, Action.PAUSE, lifecycle.pause)


@guard(post=Verb.OPERATE, action="resume")
def resume(request: HtmxRequest, name: str, id: str) -> HttpResponse:
    return _steer(request, name, id, Action.RESUME, lifecycle.resume)


@guard(post=Verb.OPERATE, action="terminate")
def terminate(request: HtmxRequest, name: str, id: str) -> HttpResponse:
    """Terminate it. A reason is required, for the audit trail."""
    if not reason_of(request):
        return _refused(request, name, id, "Enter a reason to terminate it.", status=422, dialog="terminate")
    act = functools.partial(lifecycle.terminate, rollback=bool(request.POST.get("rollback")))
    return _steer(request, name, id, Action.TERMINATE, act)


@guard(post=Verb.OPERATE, action="delete")
def delete(request: HtmxRequest, name: str, id: str) -> HttpResponse:
    """Delete it. A reason is required: only the audit trail remains."""
    instance = _instance(name, id)
    if not reason_of(request):
        return _refused(request, name, id, "Enter a reason to delete it.", status=422, dialog="delete")
    try:
        deletion.delete(instance, by=request.user, reason=reason_of(request))
    except InstanceNotFinishedError as error:
        return _refused(request, name, id, who_did(instance, str(error)), status=409)
    except InstanceNeededError as error:
        return _refused(request, name, id, str(error), status=409)
    except InstanceNotFoundError:
        raise Http404 from None
    note(request, f"Deleted {id}.")
    return HttpResponseRedirect(list_address(workflow=name))


@guard(post=Verb.OPERATE, action="retry_rollback")
def retry_rollback(request: HtmxRequest, name: str, id: str) -> HttpResponse:
    """Continue the rollback that failed."""
    instance = _instance(name, id)
    try:
        instance = lifecycle.retry_rollback(instance, by=request.user, reason=reason_of(request))
    except RollbackNotFailedError as error:
        return _refused(request, name, id, who_did(instance, str(error)), status=409)
    return _done(request, instance, f"Retrying the rollback of {instance.id}.")


@guard(post=Verb.OPERATE, action="retry_now")
def retry_now(request: HtmxRequest, name: str, id: str) -> HttpResponse:
    """Start the next attempt now."""
    instance = _instance(name, id)
    try:
        instance = wake_ups.retry_now(instance, by=request.user, reason=reason_of(request))
    except (NothingToRetryError, InstancePausedError) as error:
        return _refused(request, name, id, who_did(instance, str(error)), status=409)
    return _done(request, instance, f"Retrying {instance.id} now.")


@guard(post=Verb.OPERATE, action="wake_now")
def wake_now(request: HtmxRequest, name: str, id: str) -> HttpResponse:
    """End its sleeps."""
    instance = _instance(name, id)
    try:
        instance = wake_ups.wake_now(instance, by=request.user, reason=reason_of(request))
    except (NothingToWakeError, InstancePausedError) as error:
        return _refused(request, name, id, who_did(instance, str(error)), status=409)
    return _done(request, instance, f"Woke {instance.id}.")


@guard(post=Verb.OPERATE, action="accept_code")
def accept_code(request: HtmxRequest, name: str, id: str) -> HttpResponse:
    """Accept the code that the page showed. Code deployed after that must be reviewed first."""
    instance = _instance(name, id)
    known = registry.get(name)
    if known is None or request.POST.get("code") != known.fingerprint:
        text = "The code has changed again since you opened this page. Nothing was changed: review it and try again."
        return _refused(request, name, id, text, status=409)
    try:
        instance = lifecycle.accept_code(instance, by=request.user, reason=reason_of(request))
    except InstanceFinishedError as error:
        return _refused(request, name, id, who_did(instance, str(error)), status=409)
    return _done(request, instance, f"Accepted the new code. {instance.id} is {_words(instance.status)}.")


@guard(post=Verb.OPERATE, action="send_event", takes_payload=True)
def send_event(request: HtmxRequest, name: str, id: str) -> HttpResponse:
    """Buffer an event. The form's token is its dedup key: a double click sends one."""
    instance = _instance(name, id)
    kind = request.POST.get("type", "").strip()
    text = request.POST.get("payload", "").replace("\r\n", "\n")
    token = token_of(request.POST.get("token", ""))
    checked = check_event(kind, text)
    shown, problems = event_without_secrets(kind, text, checked)
    if not checked.is_good:
        wrong = {problem.field: True for problem in problems}
        typed = {
            "event_type": kind,
            "event_text": shown,
            "problems": problems,
            "wrong": wrong,
            "token": token,
        }
        text = f"Not sent: fix {len(wrong)} field{'' if len(wrong) == 1 else 's'}."
        return _refused(request, name, id, text, status=422, dialog="event", **typed)
    try:
        events.send_event(instance, kind, checked.value, f"studio:{token}", by=request.user)
    except (InstanceFinishedError, DedupConflictError, LimitError) as error:
        return _refused(request, name, id, who_did(instance, str(error)), status=409)
    except RepriseError as error:
        return _refused(request, name, id, str(error), status=422, dialog="event", event_text=shown)
    return _done(request, instance, f"Sent event {kind}.")


def _steer(
    request: HtmxRequest, name: str, id: str, action: Action, act: Callable[..., Instance]
) -> HttpResponse:
    instance = _instance(name, id)
    reason = reason_of(request)
    before = instance.status
    try:
        if not allows(action, before):
            return _refused(
                request, name, id, who_did(instance, f"It is already {_words(before)}."), status=409
            )
        instance = act(instance, by=request.user, reason=reason)
    except (InstanceFinishedError, StepExhaustedError) as error:
        return _refused(request, name, id, who_did(instance, str(error)), status=409)
    if action is Action.TERMINATE and not instance.is_finished:
        return _done(request, instance, f"{instance.id} is being rolled back, then ends.")
    if instance.status == InstanceStatus.WAITING_FOR_PAUSE:
        return _done(request, instance, f"Pausing {instance.id} when its running steps have finished.")
    return _done(request, instance, f"{_DONE[action].capitalize()} {instance.id}.")


def reason_of(request: HttpRequest) -> str:
    return request.POST.get("reason", "").replace("\0", "").strip()[:LONGEST_REASON]


def _instance(name: str, id: str) -> Instance:
    try:
        return Instance.objects.get(workflow=name, id=id)
    except Instance.DoesNotExist:
        raise Http404 from None


def _done(request: HtmxRequest, instance: Instance, text: str) -> HttpResponse:
    if request.htmx:
        return HttpResponse(flash(text, "complete") + _now(request, instance))
    note(request, text)
    tab = tab_before(request, instance).name
    return HttpResponseRedirect(instance.get_absolute_url() + (f"?tab={tab}" if tab else ""))


def _refused(
    request: HtmxRequest, name: str, id: str, text: str, *, status: int, dialog: str = "", **typed: Any
) -> HttpResponse:
    """Report why it was not done; reopen the dialog with what was typed if that was wrong."""
    if request.htmx and not dialog:
        return HttpResponse(flash(text, "errored") + _now(request, _instance(name, id)), status=status)
    tab = tab_before(request, _instance(name, id))
    response = show_instance(request, name, id, status=status, tab=tab, refused=text, dialog=dialog, **typed)
    return retarget(response, "body") if request.htmx else response


def _now(request: HtmxRequest, instance: Instance) -> str:
    return frame_of(InstanceView(instance.key).draw(request.user))


def who_did(instance: Instance, text: str) -> str:
    """Add who acted on the instance last."""
    acts = Audit.objects.filter(instance_key=instance.key, outcome="done").exclude(verb=notes.VERB)
    last = acts.order_by("-key").first()
    if last is None:
        return text
    reason = f" ({quoted(last.reason)})" if last.reason else ""
    return f"{text} Last action: {_DONE.get(last.verb, last.verb)} by {isolated(last.actor) or 'a program'}{reason}."


def _words(status: str) -> str:
    """Return a status in the words of the page."""
    return "pausing" if status == InstanceStatus.WAITING_FOR_PAUSE else status.replace("_", " ")
