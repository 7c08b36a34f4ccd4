"""What the start form begins with: a template, the params of another instance, values in the address, or an example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.http import QueryDict

from engine.declare.registry import Workflow
from engine.models import Instance
from engine.models.instance import InstanceQuerySet
from studio.access.permissions import Verb, allowed
from studio.display import payloads
from studio.forms import schema
from studio.forms.document import dump
from studio.forms.json_form import document_of
from studio.workflows.address import fill
from studio.workflows.templates import queries
from studio.workflows.templates.rules import content_of

LAST = "last"  # instead of an id: the newest instance


@dataclass(frozen=True, slots=True)
class Prefill:
    """The text to begin with, and what to say about it."""

    text: str
    notes: tuple[str, ...] = ()
    template: str = ""  # the slug of the one it is from


def prefill(
    workflow: Workflow[Any, Any], root: Mapping[str, Any] | None, given: QueryDict, user: Any
) -> Prefill:
    """Return what the address asks for. `root` is the schema of the params. Secrets are never filled in."""
    if root is None:
        return Prefill("")
    slug = given.get("template", "")
    base = _template(workflow, root, slug, user) if slug else _base(workflow, root, given.get("from", ""))
    notes = base.notes
    if slug and given.get("from"):
        notes = (*notes, f"Not used: from={given['from'][:100]}. The address names a template, too.")
    found = document_of(base.text)
    if found is None:
        return replace(base, notes=notes)
    filled = fill(root, found.value, given)
    if filled.refused:
        notes = (*notes, f"Not filled in from the address: {', '.join(filled.refused)[:300]}.")
    text = base.text if filled.document is found.value else dump(filled.document)
    return Prefill(text, notes, base.template)


def example_text(root: Mapping[str, Any]) -> str:
    """Return what the form begins with if the address asks for nothing."""
    return payloads.pretty(schema.example(root))


def newest(workflow: Workflow[Any, Any]) -> Instance | None:
    """Return the newest instance of a workflow, with its params."""
    return _with_params(workflow).order_by("-key").first()


def _with_params(workflow: Workflow[Any, Any]) -> InstanceQuerySet:
    return Instance.objects.filter(workflow=workflow.name).only("workflow", "id", "params")


def _base(workflow: Workflow[Any, Any], root: Mapping[str, Any], source: str) -> Prefill:
    if not source:
        return Prefill(example_text(root))
    if source == LAST:
        found = newest(workflow)
    else:
        found = _with_params(workflow).filter(id=source[:100].replace("\0", "")).first()
    if found is None:
        said = f"There is no instance {source[:100]} to copy from; this is an example."
        return Prefill(example_text(root), (said,))
    return Prefill(
        payloads.pretty_stored(found.params), (f"Copied from {found.id}. Secrets are not copied.",)
    )


def _template(workflow: Workflow[Any, Any], root: Mapping[str, Any], slug: str, user: Any) -> Prefill:
    """Return the params of a template. What has become secret since it was saved is left out."""
    found = queries.find(user, workflow.name, slug)
    if found is not None:
        content = content_of(found.params, root, is_stored=True)
        notes = (f"Not filled in, because it is secret now: {content.left_out}.",) if content.secrets else ()
        return Prefill(content.text, notes, found.slug)
    is_allowed = allowed(user, Verb.OPERATE, workflow.name)
    said = f"There is no template {slug[:80]}" if is_allowed else "Templates require the operator role"
    return Prefill(example_text(root), (f"{said}; this is an example.",))
