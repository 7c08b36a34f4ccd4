"""`workflow events list`, `workflow events send`, and `workflow answer`: what an instance receives."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence

from engine.command import output, text, values
from engine.command.address import find, origin, take_instance, take_limit, take_origin
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.models import Event
from engine.status.gathering import database_now
from engine.status.record import events_of
from engine.steer import events, requests
from engine.values.states import EventState

STATES = [str(state) for state in EventState]


def _arguments_of_list(parser: ArgumentParser) -> None:
    take_instance(parser)
    parser.add_argument("--state", choices=STATES, help="only those in this state")
    parser.add_argument("--full", action="store_true", help="include payloads")
    take_limit(parser, "events")


def _list(terminal: Terminal, options: Options) -> None:
    instance = find(options["instance"])
    wanted = events_of(instance, with_payloads=options["full"])
    if options["state"] is not None:
        wanted = wanted.filter(state=options["state"])
    rows = list(wanted[: options["limit"]])
    total = events_of(instance).count()
    document = {"events": [output.event(row, full=options["full"]) for row in rows], "total": total}
    terminal.answer(document, lambda: event_lines(terminal, rows, full=options["full"]))


def event_lines(terminal: Terminal, rows: Sequence[Event], *, full: bool) -> Iterator[str]:
    if not rows:
        yield "No events match."
        return
    now = database_now()
    cells = [("RECEIVED", "STATE", "BY", "TYPE")]
    cells += [
        (text.ago(row.received_at, now), _state(row), text.plain(row.sent_by) or "-", text.plain(row.type))
        for row in rows
    ]
    found = text.columns(cells)
    yield text.GAP.join(next(found))
    for row, cell in zip(rows, found, strict=True):
        yield text.cut(text.GAP.join(cell), terminal.width)
        if full:
            yield f"    {text.value(row.payload, terminal.width - 4)}"


def _state(row: Event) -> str:
    return row.state if row.consumed_by is None else f"{row.state} by step {row.consumed_by}"


LIST = Subcommand("list", "list the events of an instance, newest first", _arguments_of_list, _list)


def _arguments_of_send(parser: ArgumentParser) -> None:
    take_instance(parser)
    parser.add_argument("type", metavar="TYPE", help="the event's type")
    values.take_value(parser, "payload", "the payload")
    parser.add_argument("--dedup-key", metavar="KEY", help="key that makes repeated sends one event")
    take_origin(parser)


def _send(terminal: Terminal, options: Options) -> None:
    instance = find(options["instance"])
    payload = values.value(options, "payload")
    event = events.send_event(instance, options["type"], payload, options["dedup_key"], **origin(options))
    document = {"instance": output.instance(instance.refresh()), "event": output.event(event, full=False)}
    terminal.answer(document, lambda: [f"Event {text.plain(event.type)} was sent to {instance}."])


SEND = Subcommand("send", "send an event to an instance", _arguments_of_send, _send)
EVENTS = (LIST, SEND)


def _arguments_of_answer(parser: ArgumentParser) -> None:
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


ANSWER = Subcommand("answer", "answer a request", _arguments_of_answer, _answer)
