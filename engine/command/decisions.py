"""`workflow fail-step` and `skip-step`: decide what follows when the attempts of a step are used up."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator

from engine.command import text, values
from engine.command.address import natural, take_instance, take_origin
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.json_text import Document


def _arguments(parser: ArgumentParser) -> None:
    take_instance(parser)
    parser.add_argument("step", metavar="STEP", help="the name of the step")
    parser.add_argument("--count", type=natural, default=1, metavar="N", help="which step of that name (1)")


def _arguments_of_fail(parser: ArgumentParser) -> None:
    _arguments(parser)
    take_origin(parser, needs_reason=True)


def _arguments_of_skip(parser: ArgumentParser) -> None:
    _arguments(parser)
    values.take_option(parser, "output", "its output (null)")
    take_origin(parser, needs_reason=True)


def _lines_of_fail(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    yield _said(found, options, "has failed: its handler gets the last error")


def _lines_of_skip(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    yield _said(found, options, "is complete with this output, and its body does not run")


def _said(found: Document, options: Options, what: str) -> str:
    instance = found["instance"]
    status = instance["status"].replace("_", " ")
    return f'Step "{text.plain(options["step"])}" {what}. {text.named(instance)} is {status}.'


FAIL_STEP = Subcommand(
    "fail-step",
    "let a step fail whose attempts are used up and have paused its instance",
    _arguments_of_fail,
    _lines_of_fail,
)
SKIP_STEP = Subcommand(
    "skip-step",
    "complete a step with an output that you supply instead of running it again",
    _arguments_of_skip,
    _lines_of_skip,
)
