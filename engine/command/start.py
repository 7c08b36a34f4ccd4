"""`workflow start`: start an instance. Its params are validated as everywhere."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator

from engine.command import text, values
from engine.command.address import take_origin
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.json_text import Document
from engine.values.moments import EXAMPLE

EVER = "ever"


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("workflow", metavar="WORKFLOW", help="the workflow's name")
    values.take_value(parser, "params", "the params")
    parser.add_argument("--id", help="its id (default: generated)")
    parser.add_argument("--tag", action="append", help="a tag; repeatable")
    parser.add_argument("--at", metavar="TIME", help=f"when it starts, such as {EXAMPLE} (default: now)")
    parser.add_argument(
        "--retention",
        action="append",
        type=_rule,
        metavar="STATUS=DURATION",
        help=f"how long it is kept after such an end, or {EVER}; may be given several times",
    )
    take_origin(parser)


def _rule(given: str) -> tuple[str, str | None]:
    status, _, duration = given.partition("=")
    if not (status and duration):
        raise ArgumentTypeError(f'"{given}" is not a rule. Write it as complete=7d, or complete={EVER}.')
    return status, None if duration == EVER else duration


def retention_of(options: Options) -> dict[str, str | None] | None:
    return dict(options["retention"]) if options["retention"] else None


def _lines(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    starts_at = found["instance"]["starts_at"]
    when = f" It starts at {text.moment(starts_at)}." if starts_at else ""
    yield f"Started {text.named(found['instance'])}.{when}"


START = Subcommand("start", "start an instance", _arguments, _lines)
