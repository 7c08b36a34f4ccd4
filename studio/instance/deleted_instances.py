"""What is left of an instance that is gone: its rows in the audit log."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet

from engine.models import Audit
from engine.values.states import Action

SHOWN = 50
WINDOW = 100_000  # rows of the log that are looked through where nobody in particular has deleted it


@dataclass(frozen=True, slots=True)
class DeletedInstance:
    """An instance that was there. `deletion` is empty where nobody in particular deleted it: its retention was over."""

    workflow: str
    id: str
    deletion: Audit | None
    audit_log: tuple[Audit, ...]


def of(workflow: str, id: str) -> DeletedInstance | None:
    """Find what is left of it by its names; None if nothing is known of it."""
    named = Audit.objects.filter(workflow=workflow, instance_id=id)
    deletion = named.deletions().order_by("-key").first()
    newest = Audit.objects.order_by("-key").values_list("key", flat=True).first() or 0
    # Its id may have been given to another one since, which is gone as well.
    since = max(newest - WINDOW, deletion.key if deletion else 0)
    found = _of(named.filter(key__gt=since))
    if found is None and deletion is not None:
        return _of(Audit.objects.filter(instance_key=deletion.instance_key))
    return found


def of_key(key: int) -> DeletedInstance | None:
    """Find what is left of it by its key."""
    return _of(Audit.objects.filter(instance_key=key))


def _of(rows: QuerySet[Audit]) -> DeletedInstance | None:
    audit_log = tuple(rows.order_by("-key")[:SHOWN])
    if not audit_log:
        return None
    last = next((one for one in audit_log if one.outcome == "done"), audit_log[0])
    deletion = last if last.verb == Action.DELETE else None
    return DeletedInstance(last.workflow, last.instance_id, deletion, audit_log)
