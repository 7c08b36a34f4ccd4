"""`workflow list`: instances, newest first, or the workflows."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import QuerySet

from engine.command import output, text
from engine.command.address import check_workflow, take_limit
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.declare.registry import Workflow, workflows
from engine.models import Instance
from engine.status import search
from engine.status.facts import StatusFacts
from engine.status.gathering import database_now, facts_by_key, without_values
from engine.status.sentences.sentence import as_text
from engine.status.sentences.status_line import short_line
from engine.status.servers import servers_of
from engine.values.errors import RepriseError
from engine.values.identity import check_tags
from engine.values.states import FINAL, InstanceStatus

GROUPS = {"open": [*(set(InstanceStatus) - FINAL)], "finished": [*FINAL]}
COUNTED = 10_000  # instances of a workflow and status
COUNTED_AS = "10,000+"


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "what",
        nargs="?",
        choices=["instances", "workflows"],
        default="instances",
        help="what to list (instances)",
    )
    parser.add_argument("--workflow", metavar="NAME", help="only those of this workflow")
    parser.add_argument(
        "--status",
        action="append",
        choices=[*GROUPS, *map(str, InstanceStatus)],
        help="only those in this status, or open or finished ones; repeatable",
    )
    parser.add_argument("--tag", help="only those with this tag")
    parser.add_argument(
        "--q", metavar="TEXT", help="only those whose ID starts with this text, ignoring case"
    )
    take_limit(parser, "instances")
    parser.add_argument(
        "--before", type=_key, metavar="KEY", help='only older ones: the "older" key of the previous page'
    )


def _key(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ArgumentTypeError(f'"{text}" is not a key. Pass the "older" key of the previous page.')
    return int(text)


def _list(terminal: Terminal, options: Options) -> None:
    if options["what"] == "workflows":
        _list_workflows(terminal)
    else:
        _list_instances(terminal, options)


LIST = Subcommand("list", "list instances, newest first, or the workflows", _arguments, _list)


# Instances


def _list_instances(terminal: Terminal, options: Options) -> None:
    limit = options["limit"]
    rows = list(_matching(options).order_by("-key")[: limit + 1])
    older = rows[limit - 1].key if len(rows) > limit else None
    rows = rows[:limit]
    facts = facts_by_key(rows)
    document = {"instances": [_document(row, facts[row.key]) for row in rows], "older": older}
    terminal.answer(document, lambda: _instance_lines(terminal, rows, facts, older))


def _matching(options: Options) -> QuerySet[Instance]:
    rows = without_values().defer(None).defer("params", "output", "error", "pause_reason")
    if options["workflow"] is not None:
        check_workflow(options["workflow"])
        rows = rows.filter(workflow=options["workflow"])
    if options["status"]:
        chosen = [status for one in options["status"] for status in GROUPS.get(one, [one])]
        rows = rows.filter(status__in=chosen)
    if options["tag"] is not None:
        rows = rows.filter(tags__contains=check_tags([options["tag"]]))
    if options["q"] is not None:
        rows = search.by_id(rows, options["q"].replace("\0", ""))
    return rows if options["before"] is None else rows.filter(key__lt=options["before"])


def _document(row: Instance, facts: StatusFacts) -> output.Document:
    return output.instance(row) | {"why": as_text(short_line(facts), facts.now)}


def _instance_lines(
    terminal: Terminal, rows: Sequence[Instance], facts: dict[int, StatusFacts], older: int | None
) -> Iterator[str]:
    if not rows:
        yield "No instances match."
        return
    cells = [(row.status, text.ago(row.created_at, facts[row.key].now), str(row)) for row in rows]
    for row, (status, created, name) in zip(rows, text.columns(cells), strict=True):
        head = text.GAP.join((status, created, name))
        said = _said(facts[row.key])
        painted = head.replace(status, terminal.paint(row.status, status), 1)
        beside = terminal.width - len(head) - len(text.GAP)
        if said and len(said) <= beside:
            yield f"{painted}{text.GAP}{said}"
            continue
        yield painted
        if said:
            indent = " " * (len(status) + len(text.GAP))
            yield indent + text.cut(said, terminal.width - len(indent))
    if older is not None:
        yield f"There are more: --before {older}"


def _said(facts: StatusFacts) -> str:
    return text.plain(as_text(short_line(facts), facts.now))


# Workflows


def _list_workflows(terminal: Terminal) -> None:
    names = search.workflow_names()
    servers = servers_of(names)
    counts = {name: _counts(name) for name in names}
    document = {
        "workflows": [
            _workflow_document(name, counts[name]) | {"workers": servers[name].count} for name in names
        ],
        "counted_up_to": COUNTED,
    }
    terminal.answer(document, lambda: _workflow_lines(terminal, names, counts))


def _counts(name: str) -> dict[str, int]:
    """Count up to a limit: beyond it, "many" is enough, and counting a million rows takes too long."""
    rows = Instance.objects.filter(workflow=name)
    return {str(status): rows.filter(status=status)[:COUNTED].count() for status in InstanceStatus}


def _workflow_document(name: str, counts: dict[str, int]) -> output.Document:
    declared: Workflow[Any, Any] | None = workflows.get(name)
    return {
        "name": name,
        "is_declared": declared is not None,
        "description": declared.description if declared else "",
        "params_schema": _schema(declared) if declared else None,
        "max_running": declared.max_running if declared else None,
        "retention": declared.retention.seconds() if declared else None,
        "counts": counts,
    }


def _schema(declared: Workflow[Any, Any]) -> object:
    try:
        return declared.params_schema()
    except RepriseError:  # a type without a schema
        return None


def _workflow_lines(
    terminal: Terminal, names: Sequence[str], counts: dict[str, dict[str, int]]
) -> Iterator[str]:
    if not names:
        yield "There are no workflows. They are found in the workflows.py of installed apps."
        return
    open_ones = [sum(counts[name][status] for status in GROUPS["open"]) for name in names]
    cells = [("WORKFLOW", "OPEN", *(status.upper() for status in sorted(FINAL)), "")]
    for name, number in zip(names, open_ones, strict=True):
        finished = [_number(counts[name][status]) for status in sorted(FINAL)]
        cells.append((name, _number(number), *finished, "" if name in workflows else "not in the code"))
    for cell in text.columns(cells):
        yield text.GAP.join(cell).rstrip()
    now = database_now()
    newest = Instance.objects.order_by("-key").only("created_at").first()
    if newest is not None:
        yield f"The last start was {text.ago(newest.created_at, now)}."


def _number(count: int) -> str:
    return COUNTED_AS if count >= COUNTED else f"{count:,}"
