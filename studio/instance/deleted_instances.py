"""What is left of a deleted instance: its rows in the audit trail."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet

from engine.models import Audit
from engine.values.states import Action

SHOWN = 50
WINDOW = 100_000  # rows of the log to scan if no user deleted it


@dataclass(frozen=True, slots=True)
class DeletedInstance:
    """A deleted instance. `deletion` is None if its retention period ended."""

    workflow: str
    id: str
    deletion: Audit | None
    audit_trail: tuple[Audit, ...]


def of(workflow: str, id: str) -> DeletedInstance | None:
    """Return a deleted instance by workflow and id, or None if nothing is known about it."""
    named = Audit.objects.filter(workflow=workflow, instance_id=id)
    deletion = named.deletions().order_by("-key").first()
    newest = Audit.objects.order_by("-key").values_list("key", flat=True).first() or 0
    # Another instance may have had the same id since, and be deleted as well.
    since = max(newest - WINDOW, deletion.key if deletion else 0)
    found = _of(named.filter(key__gt=since))
    if found is None and deletion is not None:
        return _of(Audit.objects.filter(instance_key=deletion.instance_key))
    return found


def of_key(key: int) -> DeletedInstance | None:
    """Return a deleted instance by its key."""
    return _of(Audit.objects.filter(instance_key=key))


def _of(rows: QuerySet[Audit]) -> DeletedInstance | None:
    audit_trail = tuple(rows.order_by("-key")[:SHOWN])
    if not audit_trail:
        return None
    last = next((one for one in audit_trail if one.outcome == "done"), audit_trail[0])
    deletion = last if last.verb == Action.DELETE else None
    return DeletedInstance(last.workflow, last.instance_id, deletion, audit_trail)
