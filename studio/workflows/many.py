"""Start many instances from CSV or JSON lines: as a bulk job, after a preview."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from engine import bulk
from engine.declare.registry import Workflow
from engine.declare.registry import workflows as registry
from engine.models import BulkJob
from engine.values.errors import BulkJobExistsError, RepriseError
from engine.values.serialization.secret_schema import holds_secrets
from studio.access.permissions import Verb, allowed
from studio.forms.document import dump
from studio.forms.pace import PACES
from studio.forms.tokens import new_token
from studio.frame.addresses import ignored
from studio.frame.guard import guard
from studio.frame.notes import note
from studio.frame.pieces import page
from studio.workflows.many_form import MOST, MOST_BYTES, SHOWN, SHOWN_REFUSED, ManyForm, look
from studio.workflows.many_lines import Line, Lines
from studio.workflows.queries import overviews


@guard(get=Verb.VIEW, post=Verb.OPERATE, action="start", takes_payload=True)
def start_many(request: HttpRequest, name: str) -> HttpResponse:
    if name not in registry:
        raise Http404
    workflow = registry[name]
    # What is pasted is shown again, which no secret may be.
    has_secrets = holds_secrets(workflow.params_schema() or {})
    if request.method != "POST" or has_secrets:
        return _page(request, workflow, ManyForm("", new_token()), None, has_secrets=has_secrets)
    form = ManyForm.of(request.POST.dict())
    if request.POST.get("op") == "start" and BulkJob.objects.filter(id=form.token).exists():
        return _job(form)  # the form was sent before
    found = look(workflow, form)
    if request.POST.get("op") != "start" or not form.is_seen or not found.good:
        return _page(request, workflow, form, found)
    return _start(request, workflow, form, found)


def _start(request: HttpRequest, workflow: Workflow[Any, Any], form: ManyForm, found: Lines) -> HttpResponse:
    pace: dict[str, Any] = {**PACES[form.pace]}
    try:
        job = bulk.start_many(workflow, form.items(found.good), id=form.token, by=request.user, **pace)
    except BulkJobExistsError:  # by the other click of two
        return _job(form)
    except RepriseError as error:
        return _page(request, workflow, form, Lines(problem=str(error)))
    refused = len(found.refused)
    rest = f" {refused:,} {'lines were' if refused > 1 else 'line was'} refused." if refused else ""
    note(request, f"This job starts {job.total:,} instance{'s' * (job.total != 1)}.{rest}")
    return _job(form)


def _job(form: ManyForm) -> HttpResponse:
    return HttpResponseRedirect(reverse("studio:bulk-job", args=[form.token]))


def _page(
    request: HttpRequest,
    workflow: Workflow[Any, Any],
    form: ManyForm,
    found: Lines | None,
    *,
    has_secrets: bool = False,
) -> HttpResponse:
    """Render the form with its preview."""
    (overview,) = overviews([workflow.name])
    is_refused = found is not None and bool(found.problem)
    shown = [] if found is None else found.good[:SHOWN]
    return page(
        request,
        "studio/workflows/many.html",
        status=422 if is_refused or (has_secrets and request.method == "POST") else 200,
        has_secrets=has_secrets,
        workflow=workflow,
        overview=overview,
        form=form,
        found=found,
        first=[_row(one) for one in shown],
        more=0 if found is None else len(found.good) - len(shown),
        refused=[] if found is None else found.refused[:SHOWN_REFUSED],
        more_refused=0 if found is None else max(0, len(found.refused) - SHOWN_REFUSED),
        has_changed=request.POST.get("op") == "start" and not form.is_seen,
        may_act=allowed(request.user, Verb.OPERATE, workflow.name),
        most=MOST,
        most_bytes=MOST_BYTES,
        columns=_columns(workflow),
        ignored=ignored(request.GET, ()),
    )


def _row(line: Line) -> dict[str, Any]:
    params = dump(line.item["params"]) if "params" in line.item else ""
    return {
        "number": line.number,
        "id": line.item.get("id") or "",
        "at": line.item.get("at") or "now",
        "params": " ".join(params.split())[:200],
    }


def _columns(workflow: Workflow[Any, Any]) -> list[str]:
    schema = workflow.params_schema() or {}
    return [*schema.get("properties", {})]
