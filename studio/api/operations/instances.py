"""Instances: lists, and one with everything recorded about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Max, Min, Q, QuerySet
from django.http import HttpResponse
from ninja import Query, Router

from engine.models import Instance, Step
from engine.models.instance import InstanceQuerySet
from engine.status import documents, record
from engine.status import search as by_id
from engine.status.gathering import database_now, facts_by_key, without_values
from engine.status.record import Limits
from engine.status.search import workflow_names
from engine.status.searching import filters
from engine.status.searching.searching import search
from engine.status.snapshot import snapshot
from engine.status.steps import read_old_milestones, without_done_items
from engine.values.query.order import NEWEST_FIRST, Sort, is_place, key_of
from engine.values.query.parsing import parsed
from studio.access.permissions import visible
from studio.api.answers import answer, etag_of
from studio.api.auth import ApiRequest
from studio.api.cursors import NO_CURSOR
from studio.api.fields import InstancesWanted, RecordWanted
from studio.api.operation import reads
from studio.api.problems import ProblemError, WrongField
from studio.api.reading import cut, instance_with_values, patience, seen, sees_all
from studio.api.schemas.history import Record
from studio.api.schemas.instances import InstancesAnswer

router = Router(tags=["Instances"])

ONE = "/workflows/{workflow:name}/instances/{id:id}"
WINDOW = 100_000  # rows that one request searches


@reads(router, "/instances", InstancesAnswer, summary="List instances")
def list_instances(request: ApiRequest, wanted: Query[InstancesWanted]) -> HttpResponse:
    """Instances of all workflows, newest first.

    A page may be short, or even empty: as long as there is a `next_cursor`, more may follow.
    """
    with patience():
        page, cursor, searched = (
            _searched(wanted, request.auth) if _is_search(wanted) else _page(wanted, request.auth)
        )
    facts = facts_by_key(page)
    if not sees_all(request.auth):
        facts = {key: one.without_relatives() for key, one in facts.items()}
    found = [documents.listed(row, facts[row.key]) for row in page]
    now = facts[page[0].key].now if page else database_now()
    return answer({"instances": found, "searched": searched, "next_cursor": cursor, "now": now})


@reads(router, ONE, Record, gives=("ETag",), summary="Read an instance", url_name="api-instance")
def read_instance(request: ApiRequest, name: str, id: str, wanted: Query[RecordWanted]) -> HttpResponse:
    """An instance with its newest steps, events, children and actions.

    The ETag stands for its state: send it as If-Match with an action that must not come too late.
    """
    instance = instance_with_values(name, id)
    shown = snapshot(instance, wanted.generation, limit=wanted.limit, with_errors=True)
    relations = None if sees_all(request.auth) else visible(request.auth, workflow_names())
    limits = Limits(wanted.limit, wanted.limit, wanted.limit)
    if wanted.hide_done_items:
        steps, total = _undone(shown.instance, wanted)
        found = record.read(shown, steps, limits=limits, with_payloads=wanted.full, relations=relations)
    else:
        found, total = record.read_newest(
            shown, wanted.limit, limits=limits, with_payloads=wanted.full, relations=relations
        )
    document = documents.record(found, steps_total=total, full=wanted.full)
    return answer(document, headers={"ETag": etag_of(instance)})


def _is_search(wanted: InstancesWanted) -> bool:
    return bool(wanted.query and wanted.query.strip()) or wanted.sort != str(NEWEST_FIRST)


def _searched(wanted: InstancesWanted, holder: Any) -> tuple[Sequence[Instance], str | None, Any]:
    """Find a page by a search. Raises ProblemError for each term that cannot be understood, and a foreign cursor."""
    query, sort = parsed(wanted.query or ""), Sort.of(wanted.sort)
    if wanted.cursor is not None and not is_place(wanted.cursor, sort):
        raise _refused("cursor", "invalid", NO_CURSOR)
    found = search(
        filters.filtered(
            query,
            workflow=wanted.workflow,
            statuses=wanted.status,
            tag=wanted.tag,
            q=wanted.q,
            after=wanted.created_after,
            before=wanted.created_before,
        ),
        workflows=None if sees_all(holder) else visible(holder, workflow_names()),
        sort=sort,
        limit=wanted.limit,
        before=wanted.cursor or "",
    )
    rows = {row.key: row for row in _rows().filter(key__in=found.keys)}
    page = [rows[key] for key in found.keys if key in rows]
    return page, found.older or found.searched.go_on or None, documents.searched(found.searched)


def _refused(path: str, code: str, message: str) -> ProblemError:
    errors: list[WrongField] = [{"path": path, "code": code, "message": message}]
    return ProblemError(422, "invalid_request", f"{path}: {message}", errors=errors)


def _rows() -> InstanceQuerySet:
    return without_values().defer(None).defer("params", "output", "error", "pause_reason")


def _page(wanted: InstancesWanted, holder: Any) -> tuple[Sequence[Instance], str | None, None]:
    """Search the newest instances for a page. Without an index, search a limited number of them."""
    if wanted.cursor is not None and key_of(wanted.cursor) is None:
        raise _refused("cursor", "invalid", NO_CURSOR)
    rows = seen(_rows().of_users(), holder)
    alike = None if wanted.q is None else by_id.keys_alike(wanted.q)
    rows = _matching(rows, wanted, alike)
    top, bottom = _span(wanted)
    has_index = not _is_filtered(wanted, holder) or alike is not None
    low = bottom if has_index else max(bottom, top - WINDOW)
    page, cursor = cut(rows.filter(key__lt=top, key__gte=low).order_by("-key"), wanted.limit)
    return page, str(low) if cursor is None and low > bottom else cursor, None


def _undone(instance: Instance, wanted: RecordWanted) -> tuple[list[Step], int]:
    """Return the newest steps but done items, oldest first, and how many there are."""
    rows = without_done_items(instance)
    steps = list((rows if wanted.full else rows.defer("output")).order_by("-seq")[: wanted.limit])[::-1]
    read_old_milestones(instance, steps)
    return steps, rows.count()


def _matching(
    rows: QuerySet[Instance], wanted: InstancesWanted, alike: list[int] | None
) -> QuerySet[Instance]:
    if wanted.workflow is not None:
        rows = rows.filter(workflow=wanted.workflow)
    if wanted.status:
        rows = rows.filter(status__in=filters.stored(wanted.status))
    if wanted.tag is not None:
        rows = rows.filter(tags__contains=[wanted.tag])
    if wanted.q is not None:
        rows = rows.filter(by_id.id_begins(wanted.q) if alike is None else Q(key__in=alike))
    if wanted.created_after is not None:
        rows = rows.filter(created_at__gt=wanted.created_after)
    if wanted.created_before is not None:
        rows = rows.filter(created_at__lt=wanted.created_before)
    return rows


def _is_filtered(wanted: InstancesWanted, holder: Any) -> bool:
    """Tell whether many rows may have to be passed over to find a few."""
    if wanted.workflow is not None and wanted.status and wanted.tag is None:
        return False  # there is an index
    return bool(wanted.workflow or wanted.status or wanted.tag or wanted.q) or not sees_all(holder)


def _span(wanted: InstancesWanted) -> tuple[int, int]:
    """Return the range of keys to search: its exclusive top and its inclusive bottom."""
    ends = Instance.objects.aggregate(Min("key"), Max("key"))
    top, bottom = (ends["key__max"] or 0) + 1, ends["key__min"] or 1
    if wanted.cursor is not None:
        top = min(top, int(wanted.cursor))
    if wanted.created_before is not None:
        before = wanted.created_before + by_id.LONGEST_TRANSACTION
        top = min(top, by_id.first_key(Instance, "created_at", before))
    if wanted.created_after is not None:
        after = wanted.created_after - by_id.LONGEST_TRANSACTION
        bottom = max(bottom, by_id.first_key(Instance, "created_at", after))
    return top, bottom
