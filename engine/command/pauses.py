"""`workflow workflows list`, `pause` and `resume`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from datetime import datetime

from engine.command import text
from engine.command.address import natural, take_origin
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.json_text import Document


def states(names: Iterable[str], pauses: Iterable[Document], now: datetime) -> Document:
    """Return what `workflows list` prints: all workflows, each with its pause if it has one."""
    paused = {pause["workflow"]: pause for pause in pauses}
    rows = [{"name": name, "pause": paused.get(name)} for name in sorted({*names, *paused})]
    return {"workflows": rows, "now": now}


def _no_arguments(parser: ArgumentParser) -> None:
    pass


def _lines_of_list(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    rows, now = found["workflows"], found["now"]
    if not rows:
        yield "There are no workflows. Declare one in the workflows.py of an installed app."
        return
    cells: list[tuple[str, ...]] = [("STATE", "WORKFLOW", "HELD", "SINCE", "WHY")]
    cells += [_cells(row["name"], row["pause"], now) for row in rows]
    for cell in text.columns(cells):
        yield text.cut(text.GAP.join(cell), terminal.width).rstrip()


def _cells(name: str, pause: Document | None, now: datetime) -> tuple[str, ...]:
    if pause is None:
        return ("active", text.plain(name), "", "", "")
    return (
        "paused",
        text.plain(name),
        f"{pause['held']:,}",
        text.ago(pause["paused_at"], now),
        ": ".join(text.plain(part) for part in (pause["paused_by"], pause["reason"]) if part),
    )


def _arguments_of_pause(parser: ArgumentParser) -> None:
    _take_names(parser)
    take_origin(parser, needs_reason=True)


def _arguments_of_resume(parser: ArgumentParser) -> None:
    _take_names(parser)
    parser.add_argument(
        "--count",
        type=natural,
        metavar="N",
        help="release only the N oldest held instances of each; the workflow stays paused",
    )
    take_origin(parser)


def _take_names(parser: ArgumentParser) -> None:
    parser.add_argument(
        "workflow", nargs="+", metavar="NAME", help="the name of a workflow; several if needed"
    )


def _lines_of_pause(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    for pause in found["pauses"]:
        by = f" by {text.plain(pause['paused_by'])}" if pause["paused_by"] else ""
        why = f": {text.plain(pause['reason'])}" if pause["reason"] else ""
        yield f"Workflow {pause['workflow']} is paused{by} since {text.moment(pause['paused_at'])}{why}"


def _lines_of_resume(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    for done in found["resumed"]:
        released = text.count(done["released"], "instance")
        if done["is_paused"]:
            yield f"Workflow {done['workflow']} stays paused: {released} released, {done['held']:,} still held."
        elif done["released"]:
            yield f"Workflow {done['workflow']} is not paused any more: {released} released."
        else:
            yield f"Workflow {done['workflow']} is not paused."


WORKFLOWS = (
    Subcommand(
        "workflows list", "list the workflows, and which of them are paused", _no_arguments, _lines_of_list
    ),
    Subcommand(
        "workflows pause",
        "pause workflows: none of their instances goes on until they are resumed",
        _arguments_of_pause,
        _lines_of_pause,
    ),
    Subcommand(
        "workflows resume",
        "resume paused workflows, or release some of their instances",
        _arguments_of_resume,
        _lines_of_resume,
    ),
)
