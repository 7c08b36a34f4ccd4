"""Read and steer schedules."""

from __future__ import annotations

from engine.command.local.finding import check_workflow, origin
from engine.command.subcommand import Options
from engine.models import ScheduleRow
from engine.status import documents
from engine.status.catalog import schedules_of
from engine.status.documents import Document
from engine.steer import schedules
from engine.values.errors import ScheduleNotFoundError


def listed(options: Options) -> Document:
    rows = ScheduleRow.objects.order_by("workflow", "name")
    if options["workflow"] is not None:
        check_workflow(options["workflow"])
        rows = rows.filter(workflow=options["workflow"])
    now = schedules.clock()
    return {"schedules": schedules_of(rows, now), "now": now}


def pause(options: Options) -> Document:
    return {"schedule": documents.schedule(schedules.pause(_find(options), **origin(options)))}


def resume(options: Options) -> Document:
    return {"schedule": documents.schedule(schedules.resume(_find(options), **origin(options)))}


def run(options: Options) -> Document:
    return {"instance": documents.instance(schedules.run_now(_find(options), **origin(options)))}


def _find(options: Options) -> ScheduleRow:
    workflow, name = options["workflow"], options["schedule"].replace("\0", "")
    check_workflow(workflow)
    row = ScheduleRow.objects.filter(workflow=workflow, name=name).first()
    if row is None:
        raise ScheduleNotFoundError(workflow, name)
    return row
