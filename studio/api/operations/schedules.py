"""Schedules: when they fire, and steering them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Q
from django.http import HttpResponse
from ninja import Query, Router

from engine.models import ScheduleRow
from engine.status import documents
from engine.status.catalog import schedules_of
from engine.steer import schedules
from studio.access.denied_audit import Subject
from studio.api.answers import answer, etag_of
from studio.api.auth import ApiRequest, not_found
from studio.api.cursors import name_cursor, named
from studio.api.fields import Because, SchedulesWanted
from studio.api.operation import reads, writes
from studio.api.reading import cut, location_of, seen
from studio.api.schemas.instances import InstanceAnswer
from studio.api.schemas.schedules import ScheduleAnswer, SchedulesAnswer

router = Router(tags=["Schedules"])

_ONE = "/schedules/{workflow:name}/{path:schedule}"  # a name may be an expression, such as */5 * * * *


def _subject(names: Mapping[str, Any]) -> Subject:
    """Return the schedule in a path, as the audit trail names it."""
    workflow, name = names["name"], names["schedule"].replace("\0", "")
    is_known = ScheduleRow.objects.filter(workflow=workflow, name=name).exists()
    return Subject(workflow, data={"schedule": name}) if is_known else Subject(None)


@reads(router, "/schedules", SchedulesAnswer, summary="List the schedules")
def list_schedules(request: ApiRequest, wanted: Query[SchedulesWanted]) -> HttpResponse:
    """Schedules that a cluster has recorded, in the order of their workflows and names, and when they fire next."""
    rows = seen(ScheduleRow.objects.order_by("workflow", "name"), request.auth)
    if wanted.workflow is not None:
        rows = rows.filter(workflow=wanted.workflow)
    if wanted.cursor is not None:
        workflow, name = named(wanted.cursor)
        rows = rows.filter(Q(workflow__gt=workflow) | Q(workflow=workflow, name__gt=name))
    page, older = cut(rows, wanted.limit)
    now = schedules.clock()
    cursor = name_cursor(page[-1].workflow, page[-1].name) if older else None
    return answer({"schedules": schedules_of(page, now), "next_cursor": cursor, "now": now})


@writes(
    router,
    f"{_ONE}/pause",
    ScheduleAnswer,
    action=schedules.PAUSE,
    about=_subject,
    summary="Pause a schedule",
)
def pause_schedule(request: ApiRequest, name: str, schedule: str, body: Because) -> HttpResponse:
    """It starts nothing until it is resumed."""
    row = schedules.pause(_find(name, schedule), by=request.auth, reason=body.reason)
    return answer({"schedule": documents.schedule(row)})


@writes(
    router,
    f"{_ONE}/resume",
    ScheduleAnswer,
    action=schedules.RESUME,
    about=_subject,
    summary="Resume a schedule",
)
def resume_schedule(request: ApiRequest, name: str, schedule: str, body: Because) -> HttpResponse:
    """It goes on at its next planned time; missed times are skipped."""
    row = schedules.resume(_find(name, schedule), by=request.auth, reason=body.reason)
    return answer({"schedule": documents.schedule(row)})


@writes(
    router,
    f"{_ONE}/run",
    InstanceAnswer,
    action=schedules.RUN,
    about=_subject,
    status=201,
    gives=("ETag", "Location"),
    summary="Run a schedule now",
)
def run_schedule(request: ApiRequest, name: str, schedule: str, body: Because) -> HttpResponse:
    """Start an instance with the schedule's params, in addition to the planned ones."""
    instance = schedules.run_now(_find(name, schedule), by=request.auth, reason=body.reason)
    headers = {"Location": location_of(instance), "ETag": etag_of(instance)}
    return answer({"instance": documents.instance(instance)}, 201, headers)


def _find(workflow: str, name: str) -> ScheduleRow:
    row = ScheduleRow.objects.filter(workflow=workflow, name=name).first() if "\0" not in name else None
    if row is None:
        raise not_found()
    return row
