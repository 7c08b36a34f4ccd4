"""`workflow events list`, `workflow events send`, and `workflow answer`: what an instance receives."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from datetime import datetime

from engine.command import text, values
from engine.command.address import take_instance, take_limit, take_origin
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.json_text import Document
from engine.values.states import EventState

STATES = [str(state) for state in EventState]


def _arguments_of_list(parser: ArgumentParser) -> None:
    take_instance(parser)
    parser.add_argument("--state", choices=STATES, help="only those in this state")
    parser.add_argument("--full", action="store_true", help="include payloads")
    take_limit(parser, "events")


def _lines_of_list(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    return event_lines(terminal, found["events"], found["now"], full=options["full"])


def event_lines(
    terminal: Terminal, events: Sequence[Document], now: datetime, *, full: bool
) -> Iterator[str]:
    if not events:
        yield "No events match."
        return
    cells = [("RECEIVED", "STATE", "BY", "TYPE")]
    cells += [
        (
            text.ago(one["received_at"], now),
            _state(one),
            text.plain(one["sent_by"]) or "-",
            text.plain(one["type"]),
        )
        for one in events
    ]
    found = text.columns(cells)
    yield text.GAP.join(next(found))
    for one, cell in zip(events, found, strict=True):
        yield text.cut(text.GAP.join(cell), terminal.width)
        if full:
            yield f"    {text.value(one['payload'], terminal.width - 4)}"


def _state(event: Document) -> str:
    step = event["consumed_by"]
    state: str = event["state"]
    return state if step is None else f"{state} by step {step}"


LIST = Subcommand(
    "events list", "list the events of an instance, newest first", _arguments_of_list, _lines_of_list
)


def _arguments_of_send(parser: ArgumentParser) -> None:
    take_instance(parser)
    parser.add_argument("type", metavar="TYPE", help="the event's type")
    values.take_value(parser, "payload", "the payload")
    parser.add_argument("--dedup-key", metavar="KEY", help="key that makes repeated sends one event")
    take_origin(parser)


def _lines_of_send(terminal: Terminal, sent: Document, options: Options) -> Iterator[str]:
    yield f"Event {text.plain(sent['event']['type'])} was sent to {text.named(sent['instance'])}."


SEND = Subcommand("events send", "send an event to an instance", _arguments_of_send, _lines_of_send)
EVENTS = (LIST, SEND)


def _arguments_of_answer(parser: ArgumentParser) -> None:
    take_instance(parser)
    parser.add_argument("request", metavar="REQUEST", help="its name, or the number of its step")
    values.take_value(parser, "answer", "the answer")
    parser.add_argument("--comment", default="", help="a comment for the workflow")
    take_origin(parser)


def request_of(options: Options) -> int | str:
    """Return the number of the request's step, or its name."""
    name: str = options["request"]
    return int(name) if name.isascii() and name.isdigit() and len(name) < 10 else name


def _lines_of_answer(terminal: Terminal, given: Document, options: Options) -> Iterator[str]:
    yield f"Request {options['request']} of {text.named(given['instance'])} is answered."


ANSWER = Subcommand("answer", "answer a request", _arguments_of_answer, _lines_of_answer)
