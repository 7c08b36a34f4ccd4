"""`workflow start`: start an instance. Its params are validated as everywhere."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError

from engine.command import output, values
from engine.command.address import origin, take_origin
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.declare.registry import workflows
from engine.steer import launch

EVER = "ever"


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("workflow", metavar="WORKFLOW", help="the workflow's name")
    values.take_value(parser, "params", "the params")
    parser.add_argument("--id", help="its id (default: generated)")
    parser.add_argument("--tag", action="append", help="a tag; repeatable")
    parser.add_argument(
        "--retention",
        action="append",
        type=_rule,
        metavar="STATUS=DURATION",
        help=f"how long it is kept after such an end, or {EVER}; may be given several times",
    )
    take_origin(parser)


def _rule(text: str) -> tuple[str, str | None]:
    status, _, duration = text.partition("=")
    if not (status and duration):
        raise ArgumentTypeError(f'"{text}" is not a rule. Write it as complete=7d, or complete={EVER}.')
    return status, None if duration == EVER else duration


def _start(terminal: Terminal, options: Options) -> None:
    workflow = workflows[options["workflow"]]
    params = values.value(options, "params")
    instance = launch.start(
        workflow,
        params,
        id=options["id"],
        tags=options["tag"],
        retention=dict(options["retention"]) if options["retention"] else None,
        **origin(options),
    )
    terminal.answer({"instance": output.instance(instance)}, lambda: [f"Started {instance}."])


START = Subcommand("start", "start an instance", _arguments, _start)
