"""What the start form begins with: the params of another instance, values in the address, or an example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from engine.declare.registry import Workflow
from engine.models import Instance
from engine.models.instance import InstanceQuerySet
from studio.display import payloads
from studio.forms import schema
from studio.forms.document import dump
from studio.forms.json_form import document_of
from studio.workflows.address import fill

LAST = "last"  # instead of an id: the newest instance


@dataclass(frozen=True, slots=True)
class Prefill:
    """The text to begin with, and what to say about it."""

    text: str
    notes: tuple[str, ...] = ()


def prefill(workflow: Workflow[Any, Any], root: Mapping[str, Any] | None, given: QueryDict) -> Prefill:
    """Return what the address asks for. `root` is the schema of the params. Secrets are never filled in."""
    if root is None:
        return Prefill("")
    text, notes = _base(workflow, root, given.get("from", ""))
    found = document_of(text)
    if found is None:
        return Prefill(text, notes)
    filled = fill(root, found.value, given)
    if filled.refused:
        notes = (*notes, f"Not filled in from the address: {', '.join(filled.refused)[:300]}.")
    return Prefill(text if filled.document is found.value else dump(filled.document), notes)


def example_text(root: Mapping[str, Any]) -> str:
    """Return what the form begins with if the address asks for nothing."""
    return payloads.pretty(schema.example(root))


def newest(workflow: Workflow[Any, Any]) -> Instance | None:
    """Return the newest instance of a workflow, with its params."""
    return _with_params(workflow).order_by("-key").first()


def _with_params(workflow: Workflow[Any, Any]) -> InstanceQuerySet:
    return Instance.objects.filter(workflow=workflow.name).only("workflow", "id", "params")


def _base(workflow: Workflow[Any, Any], root: Mapping[str, Any], source: str) -> tuple[str, tuple[str, ...]]:
    if not source:
        return example_text(root), ()
    if source == LAST:
        found = newest(workflow)
    else:
        found = _with_params(workflow).filter(id=source[:100].replace("\0", "")).first()
    if found is None:
        return example_text(root), (f"There is no instance {source[:100]} to copy from; this is an example.",)
    return payloads.pretty_stored(found.params), (f"Copied from {found.id}. Secrets are not copied.",)
