"""`workflow pause --all-open` and `workflow resume --all-paused`: for a restored backup, and an outage elsewhere."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterable

from engine.command import text
from engine.command.address import Address, said
from engine.command.subcommand import Options, UsageError
from engine.status.json_text import Document
from engine.values.errors import RepriseError


class DeclinedError(RepriseError):
    """The person who was asked to confirm did not say yes. Nothing was changed.

    Answer with `yes`, or add `--yes` in a script.
    """

    def __init__(self) -> None:
        super().__init__("Nothing was changed.")


def arguments_of_pause(parser: ArgumentParser) -> None:
    _arguments(parser, "--all-open", "all instances that have not ended; it needs a reason")
    parser.add_argument(
        "--schedules", action="store_true", help="with --all-open: the schedules of these workflows, too"
    )


def arguments_of_resume(parser: ArgumentParser) -> None:
    _arguments(parser, "--all-paused", "all instances that people have paused, not those that the engine has")
    parser.add_argument(
        "--paused-for",
        type=said,
        metavar="REASON",
        help="with --all-paused: only those paused for this reason",
    )


def _arguments(parser: ArgumentParser, option: str, what: str) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("instance", nargs="?", type=Address.of, metavar="WORKFLOW/ID", help="one instance")
    which.add_argument(option, dest="all", action="store_true", help=what)
    parser.add_argument(
        "--workflow",
        action="append",
        metavar="NAME",
        help=f"with {option}: only of this workflow; repeatable",
    )
    parser.add_argument("--yes", action="store_true", help=f"with {option}: do not ask for confirmation")


def require_one(options: Options) -> None:
    """Raise UsageError for an option that goes with all instances, where one is named."""
    for name in ("workflow", "yes", "schedules", "paused_for"):
        if options.get(name):
            option = name.replace("_", "-")
            raise UsageError(f"--{option} goes with all instances, not with one that is named.")


def require_reason(options: Options) -> None:
    if not options["reason"].strip():
        raise UsageError("Pausing all open instances requires a reason: add --reason.")


def confirm(options: Options, verb: str, what: str, *, shown: Iterable[str] = ()) -> None:
    """Ask before all are changed, below lines that say more. Raises DeclinedError, or UsageError where nobody can be
    asked."""
    if options["yes"]:
        return
    if not sys.stdin.isatty() or options["json"]:
        raise UsageError(f"{verb} {what}? Add --yes.")
    question = "\n".join((*shown, f"{verb} {what}? [y/N] "))
    if input(question).strip().lower() not in ("y", "yes"):
        raise DeclinedError


def sentence(found: Document) -> str:
    if "resumed" in found:
        return f"{text.count(found['resumed'], 'instance')} resumed."
    parts = [f"{text.count(found['paused'], 'instance')} paused"]
    if found["waiting_for_pause"]:
        parts.append(
            f"{found['waiting_for_pause']:,} as soon as their running steps have ended or a worker takes them"
        )
    if found["paused_schedules"]:
        parts.append(f"{text.count(found['paused_schedules'], 'schedule')} paused")
    return ", ".join(parts) + "."
