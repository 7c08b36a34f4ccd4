"""Make and change a hook, with a preview of what it does with an example."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from engine.declare.registry import workflows as registry
from engine.status.sentences.bidi import isolated
from studio.access.permissions import Verb
from studio.display.rendering import render
from studio.forms import schema
from studio.forms.checked import Checked, Problem
from studio.frame.guard import guard
from studio.frame.notes import note
from studio.frame.pieces import page
from studio.models import Webhook
from studio.webhooks import form, hooks, queries
from studio.webhooks.form import LABELS, Typed
from studio.webhooks.hooks import NameTakenError
from studio.webhooks.keys import UnreadableSecretError
from studio.webhooks.preview import preview
from studio.webhooks.schemes import SCHEMES
from studio.webhooks.views import hook_page


@guard(get=Verb.ADMINISTER, post=Verb.ADMINISTER, action="webhook-create", takes_payload=True)
def new(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request, Typed(workflow=request.GET.get("workflow", "")[:64]), None)
    typed = Typed.of(request.POST.dict())
    checked = form.check(typed, is_new=True)
    if _is_preview(request) or not checked.is_good:
        return _page(request, typed, None, checked, is_refused=not _is_preview(request))
    secret = typed.secret or SCHEMES[typed.scheme].new_secret()
    try:
        hook = hooks.create(typed.values, secret, by=request.user)
    except NameTakenError:
        return _page(request, typed, None, _taken(typed), is_refused=True)
    except UnreadableSecretError as error:
        wrong = Checked(checked.value, (Problem("secret", str(error)),))
        return _page(request, typed, None, wrong, is_refused=True)
    if not typed.secret:
        return hook_page(request, hook, secret=secret)
    note(request, f"Made webhook {isolated(hook.name)}.")
    return HttpResponseRedirect(reverse("studio:webhook", args=[hook.key]))


@guard(
    get=Verb.ADMINISTER,
    post=Verb.ADMINISTER,
    action="webhook-change",
    takes_payload=True,
    about=queries.subject_of,
)
def edit(request: HttpRequest, key: int) -> HttpResponse:
    hook = queries.hook_of(key)
    if request.method != "POST":
        return _page(request, Typed.of_hook(hook), hook)
    typed = Typed.of({**request.POST.dict(), "scheme": hook.scheme})
    checked = form.check(typed, is_new=False)
    if _is_preview(request) or not checked.is_good:
        return _page(request, typed, hook, checked, is_refused=not _is_preview(request))
    try:
        changed = hooks.change(hook, typed.values, by=request.user)
    except NameTakenError:
        return _page(request, typed, hook, _taken(typed), is_refused=True)
    note(request, f"Changed {isolated(hook.name)}." if changed else "Nothing was different.")
    return HttpResponseRedirect(reverse("studio:webhook", args=[key]))


@guard(post=Verb.ADMINISTER, takes_payload=True)
def check(request: HttpRequest) -> HttpResponse:
    """Return the problems and the preview of a form. Writes nothing."""
    given = request.POST.dict()
    typed = Typed.of(given)
    checked = form.check(typed, is_new="secret" in given)
    return render(request, "studio/webhooks/check.html", _facts(typed, checked, is_fresh=True))


def _is_preview(request: HttpRequest) -> bool:
    return request.POST.get("do") == "preview"


def _taken(typed: Typed) -> Checked:
    rules = form.check(typed, is_new=False).value
    return Checked(rules, (Problem("name", f'There is a webhook named "{typed.name}" already.'),))


def _page(
    request: HttpRequest,
    typed: Typed,
    hook: Webhook | None,
    checked: Checked | None = None,
    *,
    is_refused: bool = False,
) -> HttpResponse:
    is_fresh = checked is None or not is_refused
    if checked is None:
        checked = form.check(typed, is_new=False)
    return page(
        request,
        "studio/webhooks/form.html",
        status=422 if is_refused else 200,
        hook=hook,
        is_refused=is_refused,
        schemes=SCHEMES.values(),
        workflows=sorted(registry),
        **_facts(typed, checked, is_fresh=is_fresh),
    )


def _facts(typed: Typed, checked: Checked, *, is_fresh: bool) -> dict[str, Any]:
    known = registry.get(typed.workflow)
    return {
        "typed": typed,
        "checked": checked,
        "is_fresh": is_fresh,
        "wrong": {problem.field: problem.message for problem in checked.problems},
        "problems": [(LABELS[problem.field], problem) for problem in checked.problems],
        "lines": preview(typed, checked.value) if checked.value is not None else [],
        "workflow": known,
        "fields": schema.fields(known.params_schema()) if known is not None and typed.starts else [],
    }
