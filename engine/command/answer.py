"""`workflow answer`: answer a request."""

from __future__ import annotations

from argparse import ArgumentParser

from engine.command import output, values
from engine.command.address import find, origin, take_instance, take_origin
from engine.command.subcommand import Options, Subcommand
from engine.command.terminal import Terminal
from engine.steer import requests


def _arguments(parser: ArgumentParser) -> None:
    take_instance(parser)
    parser.add_argument("request", metavar="REQUEST", help="its name, or the number of its step")
    values.take_value(parser, "answer", "the answer")
    parser.add_argument("--comment", default="", help="a comment for the workflow")
    take_origin(parser)


def _answer(terminal: Terminal, options: Options) -> None:
    instance = find(options["instance"])
    name = options["request"]
    request = int(name) if name.isascii() and name.isdigit() and len(name) < 10 else name
    event = requests.answer(
        instance,
        request,
        values.value(options, "answer"),
        comment=options["comment"],
        **origin(options),
    )
    document = {"instance": output.instance(instance.refresh()), "event": output.event(event, full=False)}
    terminal.answer(document, lambda: [f"Request {name} of {instance} is answered."])


ANSWER = Subcommand("answer", "answer a request", _arguments, _answer)
