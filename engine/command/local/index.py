"""Fill the index of the declared search paths, and say how far it is."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator

from engine.command import text
from engine.command.local.finding import check_workflow
from engine.command.subcommand import Options, Terminal
from engine.declare.registry import workflows
from engine.status.documents import Document
from engine.status.searching.indexed import Indexed, indexed
from engine.steer.indexing import updating
from engine.steer.indexing.filling import Progress
from engine.steer.indexing.removal import Removed
from engine.steer.indexing.writers import Waiting

SAY_SECONDS = 2.0  # how often it says how far it is

Event = Progress | Removed | Waiting


def index(terminal: Terminal, options: Options) -> int:
    """Print the progress and the result. Return the exit code."""
    only: list[str] | None = options["workflow"]
    for name in only or ():
        check_workflow(name)
    if terminal.is_json:
        removed = [_removed_document(one) for one in updating.update(only) if _is_end(one)]
        paths = [_document(one, count) for one, count in _result(only)]
        terminal.answer({"paths": paths, "removed": removed}, list)
    else:
        terminal.answer({}, lambda: _lines(only))
    return 0


def _lines(only: Collection[str] | None) -> Iterator[str]:
    say_at = time.monotonic() + SAY_SECONDS
    for event in updating.update(only):
        if isinstance(event, Removed) and event.is_over:
            yield f"{event.workflow}: {text.plain(event.path)}: removed, {text.count(event.values, 'value')}"
        elif time.monotonic() > say_at:
            say_at = time.monotonic() + SAY_SECONDS
            yield _progress(event)
    result = _result(only)
    for one, count in result:
        yield f"{one.workflow}: {text.plain(one.path)}: {text.count(count, 'instance')}, {_state(one)}"
    if not result:
        yield "No search paths are declared. Add them to a workflow: @workflow(search=[…])."


def _progress(event: Event) -> str:
    match event:
        case Progress():
            return f"{event.workflow}: {text.count(event.read, 'instance')} read so far"
        case Removed():
            return f"{event.workflow}: {text.plain(event.path)}: {text.count(event.values, 'value')} removed so far"
        case Waiting():
            return f"Waiting for the end of {text.count(event.transactions, 'open transaction')}"


def _result(only: Collection[str] | None) -> list[tuple[Indexed, int]]:
    """Return the paths with their numbers of instances."""
    rows = [one for one in indexed(only) if one.workflow in workflows]
    counts = updating.counts([one.key for one in rows])
    return [(one, counts.get(one.key, 0)) for one in rows]


def _state(one: Indexed) -> str:
    return "complete" if one.is_complete else "incomplete"


def _is_end(event: Event) -> bool:
    return isinstance(event, Removed) and event.is_over


def _document(one: Indexed, count: int) -> Document:
    return {"workflow": one.workflow, "path": one.path, "instances": count, "is_complete": one.is_complete}


def _removed_document(event: Event) -> Document:
    assert isinstance(event, Removed)
    return {"workflow": event.workflow, "path": event.path, "values": event.values}
