"""Start an instance from a form. Input is validated while it is typed; invalid input starts nothing."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect

from engine.declare.registry import Workflow
from engine.declare.registry import workflows as registry
from engine.models import Instance
from engine.status.gathering import without_values
from engine.status.servers import servers_of
from engine.steer import launch
from engine.values.errors import InstanceExistsError, RepriseError
from studio.access.permissions import Verb, allowed
from studio.display import payloads
from studio.display.rendering import render
from studio.forms import schema
from studio.forms.checked import Checked, Problem
from studio.forms.tokens import new_token
from studio.frame.guard import guard
from studio.frame.notes import note
from studio.frame.pieces import page
from studio.workflows.queries import overviews
from studio.workflows.start_form import Typed, already_started, check_start, without_secrets


@guard(get=Verb.VIEW, post=Verb.OPERATE, action="start", takes_payload=True)
def start(request: HttpRequest, name: str) -> HttpResponse:
    workflow = _workflow(name)
    if request.method != "POST":
        typed = Typed(_prefill(workflow, request.GET.get("from", "")), "", "", new_token())
        return _form(request, workflow, typed)
    typed = Typed.of(request.POST.dict())
    checked = check_start(workflow, typed)
    if not checked.of("params"):
        before = already_started(workflow, typed, checked.value, request.user)
        if before is not None:
            return HttpResponseRedirect(before.get_absolute_url())
    if not checked.is_good:
        return _form(request, workflow, typed, checked)
    return _start(request, workflow, typed, checked)


@guard(post=Verb.OPERATE, takes_payload=True)
def check(request: HttpRequest, name: str) -> HttpResponse:
    """Return the problems of the form. Starts and writes nothing."""
    workflow = _workflow(name)
    typed = Typed.of(request.POST.dict())
    return render(
        request, "studio/workflows/check.html", _facts(workflow, typed, check_start(workflow, typed))
    )


def _start(
    request: HttpRequest, workflow: Workflow[Any, Any], typed: Typed, checked: Checked
) -> HttpResponse:
    try:
        instance = launch.start(
            workflow, checked.value, id=typed.id or typed.token, tags=typed.tag_list, by=request.user
        )
    except InstanceExistsError:
        before = already_started(workflow, typed, checked.value, request.user)
        if before is not None:
            return HttpResponseRedirect(before.get_absolute_url())
        if typed.id:
            return _form(request, workflow, typed, check_start(workflow, typed))
        # An old form, sent again with other parameters, starts another instance.
        fresh = Typed(typed.text, "", typed.tags, new_token())
        return _start(request, workflow, fresh, checked)
    except RepriseError as error:
        return _form(request, workflow, typed, Checked(None, (Problem("params", str(error)),)))
    note(request, f"Started {instance.id}.")
    return HttpResponseRedirect(instance.get_absolute_url())


def _workflow(name: str) -> Workflow[Any, Any]:
    if name not in registry:
        raise Http404
    return registry[name]


def _prefill(workflow: Workflow[Any, Any], source: str) -> str:
    """Return the initial text: the params of another instance, or an example from the schema."""
    if source:
        found = Instance.objects.filter(workflow=workflow.name, id=source[:100].replace("\0", "")).first()
        if found is not None:
            return payloads.pretty_stored(found.params)
    return payloads.pretty(schema.example(workflow.params_schema())) if workflow.takes_params else ""


def _form(
    request: HttpRequest, workflow: Workflow[Any, Any], typed: Typed, checked: Checked | None = None
) -> HttpResponse:
    """Render the form with what was typed, without secrets."""
    is_refused = checked is not None
    if checked is not None:
        typed, checked = without_secrets(workflow, typed, checked)
    facts = _facts(workflow, typed, checked if checked is not None else check_start(workflow, typed))
    (overview,) = overviews([workflow.name])
    return page(
        request,
        "studio/workflows/start.html",
        status=422 if is_refused else 200,
        is_refused=is_refused,
        is_fresh=not is_refused,
        may_act=allowed(request.user, Verb.OPERATE, workflow.name),
        overview=overview,
        fields=schema.fields(workflow.params_schema()),
        recent=without_values().filter(workflow=workflow.name).order_by("-key")[:5],
        **facts,
    )


def _facts(workflow: Workflow[Any, Any], typed: Typed, checked: Checked) -> dict[str, Any]:
    return {
        "workflow": workflow,
        "typed": typed,
        "checked": checked,
        "wrong": {problem.field: True for problem in checked.problems},
        "servers": servers_of([workflow.name])[workflow.name],
    }
