"""`workflow replay`: what today's code would do with open instances; nothing is written."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable
from datetime import timedelta

from engine.command.address import Address, natural, take_limit
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.json_text import Document


def _arguments(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("instance", nargs="?", type=Address.of, metavar="WORKFLOW/ID", help="this one")
    which.add_argument("--all-open", action="store_true", help="all instances that have not ended")
    parser.add_argument(
        "--workflow",
        action="append",
        metavar="NAME",
        help="with --all-open: only those of this workflow; repeatable",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=timedelta(seconds=30),
        metavar="SECONDS",
        help="for the code of each handler (30); its handler_timeout, if that is shorter",
    )
    take_limit(parser, "findings")


def _seconds(text: str) -> timedelta:
    return timedelta(seconds=natural(text))


def _lines(terminal: Terminal, found: Document, options: Options) -> Iterable[str]:
    """Return no lines: `engine.command.local.replay` prints its findings one by one, as it makes them."""
    return ()


REPLAY = Subcommand("replay", "replay open instances with today's code; write nothing", _arguments, _lines)
