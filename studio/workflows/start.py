"""Start an instance from a form. Input is validated while it is typed; invalid input starts nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect

from engine.declare.registry import Workflow
from engine.declare.registry import workflows as registry
from engine.status.gathering import without_values
from engine.steer import launch
from engine.values.errors import InstanceExistsError, RepriseError
from studio.access.permissions import Verb, allowed
from studio.display.rendering import render
from studio.forms import schema
from studio.forms.checked import Checked, Problem
from studio.forms.json_form import CHECK, JsonForm
from studio.forms.tokens import new_token
from studio.forms.zones import ZONES
from studio.frame.guard import guard
from studio.frame.notes import note
from studio.frame.pieces import page
from studio.workflows.check import findings
from studio.workflows.prefill import prefill
from studio.workflows.queries import overviews
from studio.workflows.start_at import StartAt
from studio.workflows.start_form import Typed, already_started, check_start, without_secrets
from studio.workflows.templates.ops import OPS, Outcome, press
from studio.workflows.templates.panel import panel_of


@guard(get=Verb.VIEW, post=Verb.OPERATE, action="start", takes_payload=True)
def start(request: HttpRequest, name: str) -> HttpResponse:
    workflow = _workflow(name)
    if request.method != "POST":
        return _fresh(request, workflow)
    typed = Typed.of(workflow, request.POST.dict())
    checked = check_start(workflow, typed)
    if typed.form.op in OPS:
        return _of_template(request, workflow, typed, checked)
    if not typed.form.is_sent:
        return _changed(request, workflow, typed, checked)
    if not checked.of("params"):
        before = already_started(workflow, typed, checked.value, request.user)
        if before is not None:
            return HttpResponseRedirect(before.get_absolute_url())
    if not checked.is_good:
        return _refused(request, workflow, typed, checked)
    return _start(request, workflow, typed, checked)


@guard(post=Verb.OPERATE, takes_payload=True)
def check(request: HttpRequest, name: str) -> HttpResponse:
    """Return the problems of the form. Starts and writes nothing."""
    workflow = _workflow(name)
    typed = Typed.of(workflow, request.POST.dict())
    return render(
        request, "studio/workflows/check.html", _facts(request, workflow, typed, check_start(workflow, typed))
    )


def _start(
    request: HttpRequest, workflow: Workflow[Any, Any], typed: Typed, checked: Checked
) -> HttpResponse:
    try:
        instance = launch.start(
            workflow,
            checked.value,
            id=typed.id or typed.token,
            tags=typed.tag_list,
            at=typed.at.text or None,
            by=request.user,
        )
    except InstanceExistsError:
        before = already_started(workflow, typed, checked.value, request.user)
        if before is not None:
            return HttpResponseRedirect(before.get_absolute_url())
        if typed.id:
            return _refused(request, workflow, typed, check_start(workflow, typed))
        # An old form, sent again with other parameters, starts another instance.
        fresh = replace(typed, id="", token=new_token())
        return _start(request, workflow, fresh, checked)
    except RepriseError as error:
        return _refused(request, workflow, typed, Checked(None, (Problem("params", str(error)),)))
    is_later = instance.starts_at is not None
    note(request, f"{instance.id} is queued until its time." if is_later else f"Started {instance.id}.")
    return HttpResponseRedirect(instance.get_absolute_url())


def _workflow(name: str) -> Workflow[Any, Any]:
    if name not in registry:
        raise Http404
    return registry[name]


def _fresh(request: HttpRequest, workflow: Workflow[Any, Any]) -> HttpResponse:
    """Render the form as the address asks for it."""
    root = workflow.params_schema()
    begun = prefill(workflow, root, request.GET, request.user)
    form = JsonForm.fresh(root, begun.text, request.GET.get("tab", ""))
    at = StartAt.read(request.GET.get("at", ""))
    typed = Typed(form, "", "", new_token(), at, template=begun.template)
    checked = check_start(workflow, typed)
    return _form(request, workflow, typed, checked, is_fresh=True, said=begun.notes)


def _changed(
    request: HttpRequest, workflow: Workflow[Any, Any], typed: Typed, checked: Checked
) -> HttpResponse:
    """Render the form after a button that changes or checks it. Only then are its problems beside the fields."""
    typed, checked = _shown(request, workflow, typed, checked)
    is_stuck = typed.form.op == "tab:form" and not typed.form.is_form
    is_marked = typed.form.op == CHECK or is_stuck or bool(typed.form.problems)
    return _form(request, workflow, typed, checked, is_fresh=not is_marked)


def _of_template(
    request: HttpRequest, workflow: Workflow[Any, Any], typed: Typed, checked: Checked
) -> HttpResponse:
    """Save, overwrite or delete a template, and render the form with what was typed."""
    done = press(workflow, typed, request.user)
    typed, checked = _shown(request, workflow, typed, checked)
    return _form(request, workflow, typed, checked, is_fresh=not typed.form.problems, done=done)


def _shown(
    request: HttpRequest, workflow: Workflow[Any, Any], typed: Typed, checked: Checked
) -> tuple[Typed, Checked]:
    """Return a form that was neither sent nor refused, without secrets."""
    are_kept = "HX-Request" in request.headers  # a script swaps the form, and fills in what was typed
    return without_secrets(workflow, typed, checked, are_kept=are_kept)


def _refused(
    request: HttpRequest, workflow: Workflow[Any, Any], typed: Typed, checked: Checked
) -> HttpResponse:
    typed, checked = without_secrets(workflow, typed, checked)
    return _form(request, workflow, typed, checked, is_refused=True)


def _form(
    request: HttpRequest,
    workflow: Workflow[Any, Any],
    typed: Typed,
    checked: Checked,
    *,
    is_refused: bool = False,
    is_fresh: bool = False,
    said: tuple[str, ...] = (),
    done: Outcome | None = None,
) -> HttpResponse:
    """Render the form with what was typed. It must be without secrets."""
    (overview,) = overviews([workflow.name])
    return page(
        request,
        "studio/workflows/start.html",
        status=422 if is_refused or (done and done.problem) else 200,
        is_refused=is_refused,
        is_fresh=is_fresh,
        said=said,
        may_act=allowed(request.user, Verb.OPERATE, workflow.name),
        overview=overview,
        json_form=typed.form,
        control=typed.form.controls(() if is_fresh else checked.problems),
        fields=[] if typed.form.is_form else schema.fields(typed.form.root),
        is_optional=not workflow.takes_params,
        form_id="start-form",
        form_address=request.path,
        zones=ZONES,
        templates=panel_of(request.user, workflow, typed, done),
        recent=without_values().filter(workflow=workflow.name).order_by("-key")[:5],
        **_facts(request, workflow, typed, checked),
    )


def _facts(
    request: HttpRequest, workflow: Workflow[Any, Any], typed: Typed, checked: Checked
) -> dict[str, Any]:
    site = request.build_absolute_uri("/").rstrip("/")
    return {
        "workflow": workflow,
        "typed": typed,
        "checked": checked,
        "wrong": {problem.field: True for problem in checked.problems},
        "found": findings(workflow, typed, checked, site),
    }
