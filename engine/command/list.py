"""`workflow list`: instances, newest first, or the workflows."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator

from engine.command import text
from engine.command.address import take_limit
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.json_text import Document
from engine.values.states import FINAL, InstanceStatus

GROUPS = {"open": [*(set(InstanceStatus) - FINAL)], "finished": [*FINAL]}


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
    take_limit(parser, "instances")
    parser.add_argument(
        "--before", type=_key, metavar="KEY", help='only older ones: the "older" key of the previous page'
    )


def _key(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ArgumentTypeError(f'"{text}" is not a key. Pass the "older" key of the previous page.')
    return int(text)


def _lines(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    return _workflow_lines(found) if options["what"] == "workflows" else _instance_lines(terminal, found)


LIST = Subcommand("list", "list instances, newest first, or the workflows", _arguments, _lines)


def _instance_lines(terminal: Terminal, found: Document) -> Iterator[str]:
    rows, now = found["instances"], found["now"]
    if not rows:
        yield "No instances match."
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
    if found["older"] is not None:
        yield f"There are more: --before {found['older']}"


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
