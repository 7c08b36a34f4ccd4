"""`workflow workers list`, `drain` and `resume`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import datetime

from engine.command import text
from engine.command.address import take_origin
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.json_text import Document

MIB = 1024 * 1024


def _no_arguments(parser: ArgumentParser) -> None:
    pass


def _lines_of_list(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    rows, now = found["workers"], found["now"]
    if not rows:
        yield "No worker is running. Start a cluster with `manage.py workers`."
        return
    cells: list[tuple[str, ...]] = [("STATE", "WORKER", "CLUSTER", "SLOTS", "CODE", "MEMORY", "SEEN")]
    cells += [_cells(row, now) for row in rows]
    for cell in text.columns(cells):
        yield text.cut(text.GAP.join(cell), terminal.width)
    codes = {row["code"] for row in rows if row["code"]}
    if len(codes) > 1:
        yield f"These workers have loaded {len(codes)} versions of the code."


def _cells(row: Document, now: datetime) -> tuple[str, ...]:
    is_cluster = row["role"] == "cluster"
    memory = "" if row["memory"] is None else f"{row['memory'] / MIB:,.0f} MiB"
    return (
        "up" if row["drained_at"] is None else f"drained by {text.plain(row['drained_by']) or 'a program'}",
        text.plain(row["name"]),
        "" if is_cluster else text.plain(row["cluster"]),
        f"{row['slots']:,}" if is_cluster else f"{row['held']:,} of {row['slots']:,}",
        text.plain(row["code"]),
        memory,
        text.ago(row["seen_at"], now),
    )


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "worker", metavar="WORKER", help="the name of a worker or a cluster, such as web-1:4711"
    )
    take_origin(parser)


def _lines_of_drain(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    row = found["worker"]
    held = f" It finishes what {text.count(row['held'], 'instance')} run first." if row["held"] else ""
    which = "Cluster" if row["role"] == "cluster" else "Worker"
    yield f"{which} {text.plain(row['name'])} drains: it claims nothing until it is resumed.{held}"
    yield from found["warnings"]


def _lines_of_resume(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    row = found["worker"]
    if not found["warnings"]:
        yield f"{'Cluster' if row['role'] == 'cluster' else 'Worker'} {text.plain(row['name'])} claims again."
    yield from found["warnings"]


WORKERS = (
    Subcommand("workers list", "list the workers and what they hold", _no_arguments, _lines_of_list),
    Subcommand(
        "workers drain",
        "let a worker or a cluster claim nothing new, and finish what runs",
        _arguments,
        _lines_of_drain,
    ),
    Subcommand("workers resume", "let a drained worker or cluster claim again", _arguments, _lines_of_resume),
)
