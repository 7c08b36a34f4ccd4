"""`workflow delete`: delete a finished instance with everything it recorded; the audit trail stays."""

from __future__ import annotations

from argparse import ArgumentParser

from engine.command.address import find, origin, take_instance, take_origin
from engine.command.subcommand import Options, Subcommand
from engine.command.terminal import Terminal
from engine.steer import deletion


def _arguments(parser: ArgumentParser) -> None:
    take_instance(parser)
    take_origin(parser, needs_reason=True)


def _delete(terminal: Terminal, options: Options) -> None:
    instance = find(options["instance"])
    deletion.delete(instance, **origin(options))
    document = {"deleted": {"workflow": instance.workflow, "id": instance.id}}
    terminal.answer(document, lambda: [f"{instance} is deleted. Its audit trail stays."])


DELETE = Subcommand("delete", "delete a finished instance; its audit trail stays", _arguments, _delete)
