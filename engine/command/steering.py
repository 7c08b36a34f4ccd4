"""`workflow pause`, `resume`, `terminate`, `retry-rollback`, `retry-now`, `wake-now`, `accept-code` and `delete`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator

from engine.command import bulk, text
from engine.command.address import natural, take_instance, take_origin
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.json_text import Document


def _arguments(parser: ArgumentParser) -> None:
    take_instance(parser)
    take_origin(parser)


def _arguments_of_terminate(parser: ArgumentParser) -> None:
    take_instance(parser)
    parser.add_argument("--rollback", action="store_true", help="roll back its steps first")
    take_origin(parser, needs_reason=True)


def _arguments_of_wake_now(parser: ArgumentParser) -> None:
    take_instance(parser)
    parser.add_argument("--step", metavar="NAME", help="only the sleep of this name (default: all)")
    parser.add_argument("--count", type=natural, default=1, metavar="N", help="which sleep of that name (1)")
    take_origin(parser)


def _arguments_of_pause(parser: ArgumentParser) -> None:
    bulk.arguments_of_pause(parser)
    take_origin(parser)


def _arguments_of_resume(parser: ArgumentParser) -> None:
    bulk.arguments_of_resume(parser)
    take_origin(parser)


def _arguments_of_delete(parser: ArgumentParser) -> None:
    take_instance(parser)
    take_origin(parser, needs_reason=True)


def _lines(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    if options.get("all"):
        yield bulk.sentence(found)
        return
    instance = found["instance"]
    name, status = text.named(instance), instance["status"].replace("_", " ")
    if not found["has_changed"]:
        yield f"Nothing has changed: {name} is {status}."
    elif instance["rollback"] == "running":
        yield f"{name} is {status}: its steps are rolled back first, then it is {instance['ends_as']}."
    else:
        yield f"{name} is {status}."


def _lines_of_retry_now(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    yield f"{text.named(found['instance'])} is retried: its next attempt starts now, with the same idempotency key."


def _lines_of_wake_now(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    yield f"{text.named(found['instance'])} is woken: its sleep ends now."


def _lines_of_delete(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    yield f"{text.named(found['deleted'])} is deleted. Its audit trail stays."


PAUSE = Subcommand(
    "pause", "pause an instance, or all open ones; running bodies finish first", _arguments_of_pause, _lines
)
RESUME = Subcommand("resume", "resume a paused instance, or all", _arguments_of_resume, _lines)
TERMINATE = Subcommand(
    "terminate", "end an instance now, and the children that it waits for", _arguments_of_terminate, _lines
)
RETRY_ROLLBACK = Subcommand("retry-rollback", "retry a failed rollback", _arguments, _lines)
RETRY_NOW = Subcommand(
    "retry-now",
    "start the next attempt now, without the rest of the back-off",
    _arguments,
    _lines_of_retry_now,
)
WAKE_NOW = Subcommand("wake-now", "end a sleep now", _arguments_of_wake_now, _lines_of_wake_now)
ACCEPT_CODE = Subcommand("accept-code", "let an instance continue with the current code", _arguments, _lines)
DELETE = Subcommand(
    "delete", "delete a finished instance; its audit trail stays", _arguments_of_delete, _lines_of_delete
)
