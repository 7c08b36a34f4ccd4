"""`workflow restart`: start a new generation, from the start or from a step; `--preview` shows what that would do."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence

from engine.command import text, values
from engine.command.address import natural, said, take_instance, take_name, take_origin
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.json_text import Document
from engine.values.states import StepKind


def _arguments(parser: ArgumentParser) -> None:
    take_instance(parser)
    parser.add_argument("--from-step", metavar="NAME", help="keep what started before this step")
    parser.add_argument("--count", type=natural, default=1, metavar="N", help="which step of that name (1)")
    parser.add_argument("--kind", default="do", choices=[*map(str, StepKind)], help="what kind of step (do)")
    values.take_option(parser, "params", "other params, for a restart from the start")
    parser.add_argument(
        "--keys",
        default="new",
        choices=["new", "same"],
        help="idempotency keys of the steps that run again (new)",
    )
    take_name(parser)
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("--reason", type=said, help="why, for the audit trail")
    either.add_argument("--preview", action="store_true", help="show what it would do, without doing it")


def _lines(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    if options["preview"]:
        yield from _plan_lines(terminal, str(options["instance"]), found)
        return
    yield from _begun(found)


def _arguments_of_retry(parser: ArgumentParser) -> None:
    take_instance(parser)
    parser.add_argument(
        "--step", metavar="NAME", help="only the step of this name, of those that wait for a decision"
    )
    parser.add_argument("--count", type=natural, default=1, metavar="N", help="which step of that name (1)")
    take_origin(parser)


def _lines_of_retry(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    instance = found["instance"]
    name, status, generation = text.named(instance), instance["status"], instance["generation"]
    yield f"{name} is {status}, in generation {generation}: the step runs again."


RETRY_STEP = Subcommand(
    "retry-step",
    "run the step again that ended or paused an instance, with the same idempotency key",
    _arguments_of_retry,
    _lines_of_retry,
)
RESTART = Subcommand("restart", "run an instance again, in a new generation", _arguments, _lines)


def _begun(found: Document) -> Iterator[str]:
    instance = found["instance"]
    yield f"{text.named(instance)} is {instance['status']}: generation {instance['generation']} starts."


def _plan_lines(terminal: Terminal, instance: str, plan: Document) -> Iterator[str]:
    if plan["refused"]:
        yield plan["refused"]
        return
    yield f"{instance} would start generation {plan['generation']}."
    yield from _steps(terminal, "KEPT", plan["keeps"])
    yield from _steps(terminal, "RUNS AGAIN, with its side effects", plan["runs_again"])
    yield ""
    yield f"{text.count(plan['returned_events'], 'event')} would go back to the buffer."
    yield f"{text.count(plan['dropped_events'], 'event')} would be dropped."
    yield f"{text.count(plan['ended_children'], 'child', 'children')} would be terminated."
    if plan["keys_spent"]:
        yield plan["keys_spent"]
    yield "Nothing has changed."


def _steps(terminal: Terminal, head: str, steps: Sequence[Document]) -> Iterator[str]:
    if steps:
        yield ""
        yield head
    cells = [(str(one["seq"]), one["status"], text.plain(_named(one))) for one in steps]
    for one, (seq, status, name) in zip(steps, text.columns(cells), strict=True):
        beginning = f"{seq}{text.GAP}{status}{text.GAP}"
        painted = beginning.replace(status, terminal.paint(one["status"], status), 1)
        yield painted + text.cut(name, terminal.width - len(beginning))


def _named(step: Document) -> str:
    number = "" if step["count"] == 1 else f" #{step['count']}"
    return f'{step["kind"]} "{step["name"]}"{number}'
