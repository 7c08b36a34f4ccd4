"""`workflow health`: whether Reprise works, as facts and as an exit code."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from datetime import timedelta

from engine.command import text
from engine.command.address import natural
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.json_text import Document
from engine.status.limits import Limits, counted
from engine.values.durations import format_duration, parse_duration

UNHEALTHY = 1


def _arguments(parser: ArgumentParser) -> None:
    limits = Limits()
    parser.add_argument(
        "--max-due",
        type=_duration,
        default=limits.max_due,
        metavar="TIME",
        help="for which an instance or a schedule may be due: 90, 60s, 5m (60s)",
    )
    parser.add_argument(
        "--min-workers",
        type=_whole,
        default=limits.min_workers,
        metavar="N",
        help="that must run workflows (1)",
    )
    parser.add_argument(
        "--max-paused",
        type=_whole,
        metavar="N",
        help="instances that the engine may have paused (any number)",
    )
    parser.add_argument(
        "--timeout",
        type=natural,
        default=10,
        metavar="SECONDS",
        help="for the database to answer (10)",
    )


def _duration(said: str) -> timedelta:
    try:
        return parse_duration(float(said) if said.replace(".", "", 1).isdigit() else said, what="--max-due")
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _whole(said: str) -> int:
    return 0 if said == "0" else natural(said)


def limits_of(options: Options) -> Limits:
    return Limits(options["max_due"], options["min_workers"], options["max_paused"])


def _code(found: Document) -> int:
    return 0 if found["is_healthy"] else UNHEALTHY


def _lines(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    is_healthy = found["is_healthy"]
    yield terminal.paint("complete", "healthy") if is_healthy else terminal.paint("errored", "unhealthy")
    yield from found["problems"]
    if "workers" in found:
        for name, said in _said(found):
            yield f"{name:<12}{said}"


def _said(facts: Document) -> Iterator[tuple[str, str]]:
    clusters, workers = text.count(facts["clusters"], "cluster"), text.count(facts["workers"], "worker")
    yield "workers", f"{workers} in {clusters}, {facts['held']:,} of {facts['slots']:,} slots in use"
    yield "heartbeat", text.ago(facts["last_heartbeat_at"], facts["now"])
    late = timedelta(seconds=facts["oldest_due_seconds"] or 0)
    oldest = f", the oldest for {format_duration(late)}" if facts["due"] else ""
    held = facts.get("held_by_pause")  # an earlier server does not say it
    yield "due", f"{counted(facts['due'])}{oldest}" + (f"; {counted(held)} held by a pause" if held else "")
    yield "schedules", f"{facts['schedules_overdue']:,} overdue"
    requests = "request" if facts["open_requests"] == 1 else "requests"
    paused, asking = counted(facts["paused_by_engine"]), counted(facts["open_requests"])
    yield "for people", f"{paused} paused by the engine, {asking} {requests}"
    yield "failed", f"{counted(facts['failed_in_24_h'])} in the last 24 h"


HEALTH = Subcommand("health", "say whether database, workers and schedules work", _arguments, _lines, _code)
