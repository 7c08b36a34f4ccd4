"""`workflow pause`, `resume`, `terminate`, `retry-rollback`, `accept-code` and `delete`: one engine call each."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable

from django.db import transaction

from engine.command import bulk, output
from engine.command.address import find, origin, take_instance, take_origin
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.models import Instance
from engine.steer import deletion, lifecycle

Act = Callable[[Instance, Options], Instance]


def _pause(instance: Instance, options: Options) -> Instance:
    return lifecycle.pause(instance, **origin(options))


def _resume(instance: Instance, options: Options) -> Instance:
    return lifecycle.resume(instance, **origin(options))


def _terminate(instance: Instance, options: Options) -> Instance:
    return lifecycle.terminate(instance, rollback=options["rollback"], **origin(options))


def _retry_rollback(instance: Instance, options: Options) -> Instance:
    return lifecycle.retry_rollback(instance, **origin(options))


def _accept_code(instance: Instance, options: Options) -> Instance:
    return lifecycle.accept_code(instance, **origin(options))


def _steer(act: Act) -> Callable[[Terminal, Options], None]:
    def run(terminal: Terminal, options: Options) -> None:
        instance = find(options["instance"])
        # Locked, so that the reported change is that of this call and not of a worker.
        with transaction.atomic():
            before = _status(lifecycle.lock(instance))
            instance = act(instance.refresh(), options)
            has_changed = _status(instance) != before
        document = {"instance": output.instance(instance), "has_changed": has_changed}
        terminal.answer(document, lambda: [_sentence(instance, has_changed=has_changed)])

    return run


def _status(instance: Instance) -> tuple[str, int, str]:
    return instance.status, instance.signals, instance.code


def _sentence(instance: Instance, *, has_changed: bool) -> str:
    status = instance.status.replace("_", " ")
    if not has_changed:
        return f"Nothing has changed: {instance} is {status}."
    if instance.rollback == "running":
        return f"{instance} is {status}: its steps are rolled back first, then it is {instance.ends_as}."
    return f"{instance} is {status}."


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


def _one_or_all(act: Act, do_all: Callable[[Terminal, Options], None]) -> Callable[[Terminal, Options], None]:
    def run(terminal: Terminal, options: Options) -> None:
        if options["all"]:
            do_all(terminal, options)
        else:
            bulk.require_one(options)
            _steer(act)(terminal, options)

    return run


PAUSE = Subcommand(
    "pause",
    "pause an instance, or all open ones; running bodies finish first",
    _arguments_of_pause,
    _one_or_all(_pause, bulk.pause_all),
)
RESUME = Subcommand(
    "resume",
    "resume a paused instance, or all",
    _arguments_of_resume,
    _one_or_all(_resume, bulk.resume_all),
)
TERMINATE = Subcommand(
    "terminate",
    "end an instance now, and the children that it waits for",
    _arguments_of_terminate,
    _steer(_terminate),
)
RETRY_ROLLBACK = Subcommand("retry-rollback", "retry a failed rollback", _arguments, _steer(_retry_rollback))
ACCEPT_CODE = Subcommand(
    "accept-code", "let an instance continue with the current code", _arguments, _steer(_accept_code)
)


def _arguments_of_delete(parser: ArgumentParser) -> None:
    take_instance(parser)
    take_origin(parser, needs_reason=True)


def _delete(terminal: Terminal, options: Options) -> None:
    instance = find(options["instance"])
    deletion.delete(instance, **origin(options))
    document = {"deleted": {"workflow": instance.workflow, "id": instance.id}}
    terminal.answer(document, lambda: [f"{instance} is deleted. Its audit trail stays."])


DELETE = Subcommand(
    "delete", "delete a finished instance; its audit trail stays", _arguments_of_delete, _delete
)
