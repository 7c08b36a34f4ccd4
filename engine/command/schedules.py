"""`workflow schedules list`, `pause`, `resume` and `run`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from engine.command import output, text
from engine.command.address import check_workflow, origin, take_origin
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.models import Instance, ScheduleRow
from engine.steer import schedules
from engine.values.errors import ScheduleNotFoundError

UPCOMING = 5


def _arguments_of_list(parser: ArgumentParser) -> None:
    parser.add_argument("--workflow", metavar="NAME", help="only those of this workflow")


def _list(terminal: Terminal, options: Options) -> None:
    rows = ScheduleRow.objects.order_by("workflow", "name")
    if options["workflow"] is not None:
        check_workflow(options["workflow"])
        rows = rows.filter(workflow=options["workflow"])
    found = list(rows)
    last = Instance.objects.only("key", "workflow", "id", "status", "created_at").in_bulk(
        [row.last_instance_key for row in found if row.last_instance_key is not None]
    )
    now = schedules.clock()
    document = {"schedules": [_document(row, last.get(row.last_instance_key or 0), now) for row in found]}
    terminal.answer(document, lambda: _lines(terminal, found, last, now))


def _document(row: ScheduleRow, last: Instance | None = None, now: datetime | None = None) -> output.Document:
    return {
        "workflow": row.workflow,
        "name": row.name,
        "expression": row.expression,
        "timezone": row.timezone,
        "params": row.params,
        "is_declared": row.is_declared,
        "paused_at": row.paused_at,
        "paused_by": row.paused_by,
        "upcoming": schedules.upcoming(row, UPCOMING, now=now),
        "last_planned_at": row.last_planned_at,
        "last_instance": output.relation(last) if last else None,
        "last_missed": row.last_missed,
        "last_error": row.last_error or None,
    }


def _lines(
    terminal: Terminal, rows: Sequence[ScheduleRow], last: Mapping[int, Instance], now: datetime
) -> Iterator[str]:
    if not rows:
        yield "There are no schedules. A cluster records the declared schedules when it starts."
        return
    cells = [("NEXT", "LAST", "WORKFLOW", "SCHEDULE")]
    cells += [(_next(row, now), text.ago(_ran_at(row, last), now), row.workflow, _named(row)) for row in rows]
    for row, cell in zip((None, *rows), text.columns(cells), strict=True):
        yield text.cut(text.GAP.join(cell), terminal.width)
        if row is not None and row.last_error:
            yield text.cut(f"    last run: {text.plain(row.last_error)}", terminal.width)


def _ran_at(row: ScheduleRow, last: Mapping[int, Instance]) -> datetime | None:
    """Return when it last started an instance, as planned or manually."""
    started = last.get(row.last_instance_key or 0)
    return started.created_at if started else row.last_planned_at


def _next(row: ScheduleRow, now: datetime) -> str:
    if row.paused_at is not None:
        return "paused"
    return "not in the code" if not row.is_declared else text.ago(row.next_at, now)


def _named(row: ScheduleRow) -> str:
    planned = f"{row.expression} {row.timezone}"
    return planned if row.name == row.expression else f"{text.plain(row.name)} ({planned})"


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("workflow", metavar="WORKFLOW", help="the workflow's name")
    parser.add_argument("schedule", metavar="SCHEDULE", help="its name, in quotes if it has blanks")
    take_origin(parser)


def _find(options: Options) -> ScheduleRow:
    workflow, name = options["workflow"], options["schedule"].replace("\0", "")
    check_workflow(workflow)
    row = ScheduleRow.objects.filter(workflow=workflow, name=name).first()
    if row is None:
        raise ScheduleNotFoundError(workflow, name)
    return row


def _pause(terminal: Terminal, options: Options) -> None:
    row = schedules.pause(_find(options), **origin(options))
    terminal.answer({"schedule": _document(row)}, lambda: [f"Schedule {row} is paused."])


def _resume(terminal: Terminal, options: Options) -> None:
    row = schedules.resume(_find(options), **origin(options))
    said = f"Schedule {row} is resumed" + (f" at {text.moment(row.next_at)}." if row.next_at else ".")
    terminal.answer({"schedule": _document(row)}, lambda: [said])


def _run(terminal: Terminal, options: Options) -> None:
    instance = schedules.run_now(_find(options), **origin(options))
    terminal.answer({"instance": output.instance(instance)}, lambda: [f"Started {instance}."])


SCHEDULES = (
    Subcommand("list", "list the schedules and when they fire", _arguments_of_list, _list),
    Subcommand("pause", "pause a schedule: it starts nothing until it is resumed", _arguments, _pause),
    Subcommand("resume", "resume a schedule at its next planned time", _arguments, _resume),
    Subcommand("run", "start an instance now, with the schedule's params", _arguments, _run),
)
