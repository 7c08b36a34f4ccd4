"""`workflow list`: instances, newest first, or the workflows."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator

from engine.command import text
from engine.command.address import take_limit
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.json_text import Document
from engine.status.searching.filters import GROUPS
from engine.values.query.order import NEWEST_FIRST, Place, Sort, key_of, window_of
from engine.values.states import FINAL, InstanceStatus


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "what",
        nargs="?",
        choices=["instances", "workflows"],
        default="instances",
        help="what to list (instances)",
    )
    parser.add_argument("--workflow", metavar="NAME", help="only those of this workflow")
    parser.add_argument(
        "--status",
        action="append",
        choices=[*GROUPS, *map(str, InstanceStatus)],
        help="only those in this status, or open or finished ones; repeatable",
    )
    parser.add_argument("--tag", help="only those with this tag")
    parser.add_argument(
        "--q", metavar="TEXT", help="only those whose ID starts with this text, ignoring case"
    )
    parser.add_argument(
        "--query",
        metavar="SEARCH",
        help='only those that it finds: "status:open params.region=eu started:<2h"',
    )
    parser.add_argument(
        "--sort",
        type=_sort,
        default=NEWEST_FIRST,
        help="started, finished or duration; --sort=-finished has the last first (-started)",
    )
    take_limit(parser, "instances")
    parser.add_argument(
        "--before", type=_key, metavar="KEY", help='only those after it: the "older" key of the previous page'
    )


def _sort(text: str) -> Sort:
    try:
        return Sort.of(text)
    except ValueError as problem:
        raise ArgumentTypeError(str(problem)) from None


def _key(text: str) -> str:
    if key_of(text) is None and Place.of(text) is None and window_of(text) is None:
        raise ArgumentTypeError(f'"{text}" is not a key. Pass the "older" key of the previous page.')
    return text


def place_of(cursor: str) -> int | str | None:
    """Return a cursor as the JSON of the command has it: a key as a number."""
    return int(cursor) if cursor.isdigit() else cursor or None


def _lines(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    return _workflow_lines(found) if options["what"] == "workflows" else _instance_lines(terminal, found)


LIST = Subcommand("list", "list instances, newest first, or the workflows", _arguments, _lines)


def _instance_lines(terminal: Terminal, found: Document) -> Iterator[str]:
    rows, now = found["instances"], found["now"]
    if not rows:
        yield "No instances match."
        yield from _searched(found)
        return
    cells = [(row["status"], text.ago(row["created_at"], now), text.named(row)) for row in rows]
    for row, (status, created, name) in zip(rows, text.columns(cells), strict=True):
        head = text.GAP.join((status, created, name))
        said = text.plain(row["why"])
        painted = head.replace(status, terminal.paint(row["status"], status), 1)
        beside = terminal.width - len(head) - len(text.GAP)
        if said and len(said) <= beside:
            yield f"{painted}{text.GAP}{said}"
            continue
        yield painted
        if said:
            indent = " " * (len(status) + len(text.GAP))
            yield indent + text.cut(said, terminal.width - len(indent))
    yield from _searched(found)


def _searched(found: Document) -> Iterator[str]:
    """Say how much was searched, and where it goes on."""
    searched, older = found["searched"], found["older"]
    if searched is None or searched["rows"] is None:
        if older is not None:
            yield f"There are more: --before {older}"
        return
    yield f"Searched {searched['rows']:,} of about {searched['of']:,} instances. To go on: --before {older}"
    if searched["hint"] is not None:
        yield f"To search all instances, add {searched['hint']}."


def _workflow_lines(found: Document) -> Iterator[str]:
    rows, most = found["workflows"], found["counted_up_to"]
    if not rows:
        yield "There are no workflows. They are found in the workflows.py of installed apps."
        return
    cells = [("WORKFLOW", "OPEN", *(status.upper() for status in sorted(FINAL)), "")]
    for row in rows:
        counts = row["counts"]
        number = sum(counts[status] for status in GROUPS["open"])
        finished = [_number(counts[status], most) for status in sorted(FINAL)]
        cells.append(
            (row["name"], _number(number, most), *finished, "" if row["is_declared"] else "not in the code")
        )
    for cell in text.columns(cells):
        yield text.GAP.join(cell).rstrip()
    if found["last_start_at"] is not None:
        yield f"The last start was {text.ago(found['last_start_at'], found['now'])}."


def _number(count: int, most: int) -> str:
    return f"{most:,}+" if count >= most else f"{count:,}"
