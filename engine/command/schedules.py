"""`workflow schedules list`, `pause`, `resume` and `run`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import datetime

from engine.command import text
from engine.command.address import take_origin
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.json_text import Document


def _arguments_of_list(parser: ArgumentParser) -> None:
    parser.add_argument("--workflow", metavar="NAME", help="only those of this workflow")


def _lines_of_list(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    rows, now = found["schedules"], found["now"]
    if not rows:
        yield "There are no schedules. A cluster records the declared schedules when it starts."
        return
    cells = [("NEXT", "LAST", "WORKFLOW", "SCHEDULE")]
    cells += [
        (_next(row, now), text.ago(row["last_started_at"], now), row["workflow"], _named(row)) for row in rows
    ]
    for row, cell in zip((None, *rows), text.columns(cells), strict=True):
        yield text.cut(text.GAP.join(cell), terminal.width)
        if row is not None and row["last_error"]:
            yield text.cut(f"    last run: {text.plain(row['last_error'])}", terminal.width)


def _next(row: Document, now: datetime) -> str:
    if row["paused_at"] is not None:
        return "paused"
    return "not in the code" if not row["is_declared"] else text.ago(row["next_at"], now)


def _named(row: Document) -> str:
    planned = f"{row['expression']} {row['timezone']}"
    return planned if row["name"] == row["expression"] else f"{text.plain(row['name'])} ({planned})"


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("workflow", metavar="WORKFLOW", help="the workflow's name")
    parser.add_argument("schedule", metavar="SCHEDULE", help="its name, in quotes if it has blanks")
    take_origin(parser)


def _lines_of_pause(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    yield f"Schedule {_title(found)} is paused."


def _lines_of_resume(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    next_at = found["schedule"]["next_at"]
    at = f" at {text.moment(next_at)}" if next_at else ""
    yield f"Schedule {_title(found)} is resumed{at}."


def _lines_of_run(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    yield f"Started {text.named(found['instance'])}."


def _title(found: Document) -> str:
    row = found["schedule"]
    return f"{row['workflow']}: {row['name']}"


SCHEDULES = (
    Subcommand("schedules list", "list the schedules and when they fire", _arguments_of_list, _lines_of_list),
    Subcommand(
        "schedules pause",
        "pause a schedule: it starts nothing until it is resumed",
        _arguments,
        _lines_of_pause,
    ),
    Subcommand(
        "schedules resume", "resume a schedule at its next planned time", _arguments, _lines_of_resume
    ),
    Subcommand(
        "schedules run", "start an instance now, with the schedule's params", _arguments, _lines_of_run
    ),
)
