"""`workflow pause`, `resume`, `terminate`, `retry-rollback`, `accept-code` and `delete`."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator

from engine.command import bulk, text
from engine.command.address import take_instance, take_origin
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.json_text import Document


def _arguments(parser: ArgumentParser) -> None:
    take_instance(parser)
    take_origin(parser)


def _arguments_of_terminate(parser: ArgumentParser) -> None:
    take_instance(parser)
    parser.add_argument("--rollback", action="store_true", help="roll back its steps first")
    take_origin(parser, needs_reason=True)


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
ACCEPT_CODE = Subcommand("accept-code", "let an instance continue with the current code", _arguments, _lines)
DELETE = Subcommand(
    "delete", "delete a finished instance; its audit trail stays", _arguments_of_delete, _lines_of_delete
)
