"""`workflow show`: the state of an instance, with its steps, attempts, events, children and audit trail."""

from __future__ import annotations

import textwrap
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence

from engine.command import text
from engine.command.address import natural, take_instance, take_limit
from engine.command.audit_lines import audit_lines
from engine.command.events import event_lines
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.status.errors import error_line
from engine.status.json_text import Document

INDENT = "  "


def _arguments(parser: ArgumentParser) -> None:
    take_instance(parser)
    parser.add_argument(
        "--full",
        action="store_true",
        help="include outputs of steps, all items of maps, payloads of events and tracebacks",
    )
    parser.add_argument("--generation", type=natural, metavar="N", help="an earlier generation, as it ended")
    take_limit(parser, "steps, and events, children and actions,")


def _lines(terminal: Terminal, found: Document, options: Options) -> Iterator[str]:
    full = options["full"]
    yield from _head(terminal, found)
    if full and found["instance"]["error"]:
        yield ""
        yield from _trace(found["instance"]["error"])
    if found["steps"]:
        yield ""
        yield f"STEPS{_of(found, 'steps')}"
        yield from _steps(terminal, found, full=full)
    if found["events"]:
        yield ""
        yield f"EVENTS{_of(found, 'events')}"
        yield from event_lines(terminal, found["events"], found["now"], full=full)
    if found["children"]:
        yield ""
        yield f"CHILDREN{_of(found, 'children')}"
        yield from _children(terminal, found)
    yield from _generations(terminal, found)
    yield from audit_lines(terminal, found["audit"], found["now"])


SHOW = Subcommand("show", "show one instance", _arguments, _lines)


def _of(found: Document, what: str) -> str:
    shown, total = len(found[what]), found[f"{what}_total"]
    return "" if shown == total else f" (the newest {shown:,} of {total:,}; --limit shows more)"


def _head(terminal: Terminal, found: Document) -> Iterator[str]:
    instance = found["instance"]
    yield f"{text.named(instance)}  {terminal.paint(instance['status'])}"
    yield from textwrap.wrap(text.plain(instance["why"]), terminal.width)
    yield ""
    for name, said in _facts(terminal, found):
        yield text.cut(f"{name:<12}{said}", terminal.width)


def _facts(terminal: Terminal, found: Document) -> Iterator[tuple[str, str]]:
    instance, now = found["instance"], found["now"]
    by = f" by {text.plain(instance['started_by'])}" if instance["started_by"] else ""
    yield "created", f"{text.moment(instance['created_at'])} ({text.ago(instance['created_at'], now)}){by}"
    if instance["finished_at"]:
        span = text.took(instance["began_at"], instance["finished_at"])
        ended = text.ago(instance["finished_at"], now)
        yield "finished", f"{text.moment(instance['finished_at'])} ({ended}, after {span})"
    if instance["generation"] > 1 or found["generations"]:
        yield "generation", str(instance["generation"])
    if instance["rollback"]:
        yield "rollback", instance["rollback"]
    if instance["tags"]:
        yield "tags", text.plain(", ".join(instance["tags"]))
    if instance["parent"]:
        yield "parent", text.named(instance["parent"])
    if instance["params"] is not None:
        yield "params", text.value(instance["params"], terminal.width)
    if instance["status"] == "complete":
        yield "output", text.value(instance["output"], terminal.width)
    if instance["unreached"]:
        numbers = ", ".join(map(str, instance["unreached"]))
        yield "unreached", f"steps {numbers}, which the code did not call again"


def _trace(error: object) -> Iterator[str]:
    if isinstance(error, dict):
        for line in str(error.get("traceback") or "").splitlines():
            yield INDENT + text.shown(line)


def _steps(terminal: Terminal, found: Document, *, full: bool) -> Iterator[str]:
    now, steps = found["now"], found["steps"]
    depths = _depths(steps)
    maps = {step["seq"] for step in steps if step["kind"] == "map"}
    cells = [("#", "STATUS", "KIND", "TRIES", "STARTED", "TOOK", "STEP")]
    for step in steps:
        name = f"{step['name']}[{step['count'] - 1}]" if step["parent"] in maps else step["label"]
        tries = str(step["attempts_total"]) if step["kind"] == "do" else "-"
        times = text.ago(step["started_at"], now), text.took(step["started_at"], step["finished_at"])
        named = INDENT * depths[step["seq"]] + text.plain(name)
        cells.append((str(step["seq"]), step["status"], step["kind"], tries, *times, named))
    written = text.columns(cells)
    yield text.GAP.join(next(written))
    for step, cell in zip(steps, written, strict=True):
        line = text.cut(text.GAP.join(cell), terminal.width)
        yield line.replace(cell[1], terminal.paint(step["status"], cell[1]), 1)
        if step["items"]:
            said = ", ".join(f"{number:,} {status}" for status, number in step["items"].items())
            yield f"{INDENT * 3}of its items {said}"
        yield from _beneath(terminal, step, full=full)


def _depths(steps: Sequence[Document]) -> dict[int, int]:
    """Return the depth of each step; a step whose parent is not shown has depth 0."""
    depths: dict[int, int] = {}
    for step in steps:
        depths[step["seq"]] = depths.get(step["parent"], -1) + 1
    return depths


def _beneath(terminal: Terminal, step: Document, *, full: bool) -> Iterator[str]:
    """Yield what does not fit into a step's line: failed attempts, what was kept, rolled back or returned."""
    indent = INDENT * 3
    if step["kept_from"] is not None:
        yield f"{indent}kept from generation {step['kept_from']}"
    for attempt in step["attempts"]:
        yield from _attempt(terminal, attempt, full=full)
    if step["is_exhausted"]:
        yield f"{indent}its attempts are used up: retry, skip or fail it"
    if step["decision"]:
        by = text.plain(step["decision"]["by"]) or "a program"
        yield f"{indent}{step['decision']['outcome']} by {by}"
    if step["error"] is not None and not step["attempts"]:
        yield indent + text.cut(text.plain(error_line(step["error"])), terminal.width - len(indent))
    if step["rollback"]:
        yield f"{indent}rollback {step['rollback']}"
    if full and step["status"] == "complete":
        shown = (
            "(a sensitive value)" if step["sensitive"] else text.value(step["output"], terminal.width - 14)
        )
        yield f"{indent}output  {shown}"


def _attempt(terminal: Terminal, attempt: Document, *, full: bool) -> Iterator[str]:
    error, status, indent = attempt["error"], attempt["status"], INDENT * 3
    if error is None and status in ("complete", "running"):
        return
    what = "rollback" if attempt["phase"] == "rollback" else "attempt"
    after = text.took(attempt["started_at"], attempt["finished_at"])
    said = f"{what} {attempt['number']} {status} after {after}: {error_line(error)}".rstrip(": ")
    yield indent + text.cut(text.plain(said), terminal.width - len(indent))
    if full:
        yield from (indent + line for line in _trace(error))


def _children(terminal: Terminal, found: Document) -> Iterator[str]:
    cells = [(child["status"], text.named(child)) for child in found["children"]]
    for child, (status, name) in zip(found["children"], text.columns(cells), strict=True):
        yield f"{terminal.paint(child['status'], status)}{text.GAP}{name}"


def _generations(terminal: Terminal, found: Document) -> Iterator[str]:
    if not found["generations"]:
        return
    yield ""
    yield "EARLIER GENERATIONS (--generation shows one)"
    for one in found["generations"]:
        said = f"{one['number']}  {terminal.paint(one['status'])}  {text.moment(one['finished_at'])}"
        why = text.plain(error_line(one["error"]))
        yield f"{said}  {text.cut(why, max(terminal.width - len(said) - 2, 0))}".rstrip()
