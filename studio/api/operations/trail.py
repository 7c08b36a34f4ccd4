"""The audit trail, the workers, and the holder of the token."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Count
from django.http import HttpResponse
from django.utils import timezone
from ninja import Query, Router

from engine.models import Audit, Instance, Worker
from engine.status import documents, health
from engine.status.limits import Limits
from engine.steer.workers import running
from studio.access.permissions import rights, sees_all, sees_health, visible, visible_rows
from studio.access.principals import Principal
from studio.api.answers import answer
from studio.api.auth import ApiRequest
from studio.api.fields import AuditWanted, HealthWanted
from studio.api.operation import reads
from studio.api.problems import ProblemError
from studio.api.reading import patience
from studio.api.schemas.history import ActionsAnswer
from studio.api.schemas.operating import HealthAnswer, Me, WorkersAnswer
from studio.audit import queries as audit_trail

router = Router(tags=["Operations"])

HEALTH_WITHIN = timedelta(seconds=5)


@reads(router, "/me", Me, operation_id="read_me", summary="Read who the token belongs to")
def me(request: ApiRequest) -> HttpResponse:
    """The name that the audit trail records, and what the holder may do now."""
    holder = request.auth
    is_token = isinstance(holder, Principal)
    return answer(
        {
            "name": str(holder.audit_name if is_token else holder.get_username()),
            "verbs": sorted(rights(holder)),
            "workflows": list(holder.scope.workflows) if is_token else ["*"],
            "expires_at": holder.expires_at if is_token else None,
        }
    )


@reads(router, "/audit", ActionsAnswer, summary="List the audit trail")
def list_audit(request: ApiRequest, wanted: Query[AuditWanted]) -> HttpResponse:
    """Who did what, newest first. A page may be short: `next_cursor` says whether more rows may follow."""
    search = audit_trail.Wanted(
        person=wanted.person or "",
        verb=wanted.verb or "",
        outcome=wanted.outcome or "",
        workflow=wanted.workflow or "",
        id=wanted.id or "",
        begins_at=wanted.since,
        ends_at=wanted.until,
    )
    before = None if wanted.cursor is None else int(wanted.cursor)
    with patience():
        among = Audit.objects.filter(visible_rows(request.auth))
        page = audit_trail.page_of(search, before=before, limit=wanted.limit, among=among)
    cursor = None if page.older is None else str(page.older)
    return answer({"actions": [documents.action_on(row) for row in page.entries], "next_cursor": cursor})


@reads(router, "/workers", WorkersAnswer, summary="List the workers")
def list_workers(request: ApiRequest) -> HttpResponse:
    """Clusters and workers that were seen lately. Those that serve no workflow of the token's are left out."""
    rows = running()
    found = [documents.worker(row, rows) for row in rows]
    if not sees_all(request.auth):
        found = _seen(rows, found, request.auth)
    return answer({"workers": found, "now": timezone.now()})


@reads(router, "/health", HealthAnswer, summary="Read whether everything works")
def read_health(request: ApiRequest, wanted: Query[HealthWanted]) -> HttpResponse:
    """What `manage.py workflow health` says. Its counts are of all workflows: the token must be for all of them."""
    if not sees_health(request.auth):
        raise ProblemError(403, "not_allowed", "This needs a token for all workflows.")
    limits = Limits(timedelta(seconds=wanted.max_due), wanted.min_workers, wanted.max_paused)
    return answer(documents.health(health.read(limits=limits, timeout=HEALTH_WITHIN), timezone.now()))


def _seen(
    rows: Sequence[Worker], found: Sequence[documents.Document], holder: Any
) -> list[documents.Document]:
    """Leave out workflows that the holder may not see, also from the numbers of instances."""
    names = visible(holder, sorted({name for row in rows for name in row.workflows}))
    owned = Instance.objects.filter(owner__in=[row.worker_id for row in rows], workflow__in=names)
    held = dict(owned.order_by().values_list("owner").annotate(Count("key")))
    return [
        one | {"workflows": served, "held": held.get(row.worker_id, 0)}
        for row, one in zip(rows, found, strict=True)
        if (served := [name for name in one["workflows"] if name in names])
    ]
