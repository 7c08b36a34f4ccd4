"""`workflow show`: the state of an instance, with its steps, attempts, events, children and audit trail."""

from __future__ import annotations

import textwrap
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence

from django.db.models import QuerySet

from engine.command import output, text
from engine.command.address import find, natural, take_instance, take_limit
from engine.command.events import event_lines
from engine.command.subcommand import Options, Subcommand, Terminal
from engine.models import Attempt, Instance, Step
from engine.status import record
from engine.status.errors import error_line
from engine.status.record import Limits, Record
from engine.status.sentences.sentence import as_text
from engine.status.snapshot import snapshot
from engine.status.steps import count_inside, read_old_milestones, steps_of

INDENT = "  "
GROUPS = ("map", "parallel")
UNEVENTFUL = ("complete", "cancelled")


def _arguments(parser: ArgumentParser) -> None:
    take_instance(parser)
    parser.add_argument(
        "--full",
        action="store_true",
        help="include outputs of steps, all items of maps, payloads of events and tracebacks",
    )
    parser.add_argument("--generation", type=natural, metavar="N", help="an earlier generation, as it ended")
    take_limit(parser, "steps, and events, children and actions,")


def _show(terminal: Terminal, options: Options) -> None:
    full, limit = options["full"], options["limit"]
    shown = snapshot(find(options["instance"]), options["generation"], limit=limit, with_errors=True)
    rows = _wanted_steps(shown.instance, hides_done=not (full or terminal.is_json))
    steps = list((rows if full else rows.defer("output")).order_by("-seq")[:limit])[::-1]
    total = rows.count() if len(steps) == limit else len(steps)
    read_old_milestones(shown.instance, steps)
    found = record.read(shown, steps, limits=Limits(limit, limit, limit), with_payloads=full)
    terminal.answer(
        output.record(found, steps_total=total, full=full), lambda: _lines(terminal, found, total, full=full)
    )


def _wanted_steps(instance: Instance, *, hides_done: bool) -> QuerySet[Step]:
    """Return the query for the steps; `hides_done` excludes successful items of maps and parallels."""
    steps = steps_of(instance)
    if not hides_done:
        return steps
    return steps.exclude(parent__in=steps.filter(kind__in=GROUPS).values("seq"), status__in=UNEVENTFUL)


SHOW = Subcommand("show", "show one instance", _arguments, _show)


def _lines(terminal: Terminal, found: Record, steps_total: int, *, full: bool) -> Iterator[str]:
    yield from _head(terminal, found)
    if full and found.instance.last_problem:
        yield ""
        yield from _trace(found.instance.last_problem)
    if found.steps:
        yield ""
        yield f"STEPS{_of(len(found.steps), steps_total)}"
        yield from _steps(terminal, found, full=full)
    if found.events:
        yield ""
        yield f"EVENTS{_of(len(found.events), found.count_events())}"
        yield from event_lines(terminal, found.events, full=full)
    if found.children:
        yield ""
        yield f"CHILDREN{_of(len(found.children), found.children_total)}"
        yield from _children(terminal, found)
    yield from _generations(terminal, found)
    yield from _audit(terminal, found)


def _of(shown: int, total: int) -> str:
    return "" if shown == total else f" (the newest {shown:,} of {total:,}; --limit shows more)"


def _head(terminal: Terminal, found: Record) -> Iterator[str]:
    instance, now = found.instance, found.facts.now
    yield f"{instance}  {terminal.paint(instance.status)}"
    yield from textwrap.wrap(text.plain(as_text(found.status_line, now)), terminal.width)
    yield ""
    by = f" by {text.plain(instance.started_by)}" if instance.started_by else ""
    facts = {"created": f"{text.moment(instance.created_at)} ({text.ago(instance.created_at, now)}){by}"}
    if instance.finished_at:
        span = text.took(found.began_at, instance.finished_at)
        ended = text.ago(instance.finished_at, now)
        facts["finished"] = f"{text.moment(instance.finished_at)} ({ended}, after {span})"
    if instance.generation > 1 or found.generations.earlier:
        facts["generation"] = str(instance.generation)
    if instance.rollback:
        facts["rollback"] = instance.rollback
    if instance.tags:
        facts["tags"] = text.plain(", ".join(instance.tags))
    if found.parent:
        facts["parent"] = str(found.parent)
    if instance.params is not None:
        facts["params"] = text.value(instance.params, terminal.width)
    if instance.status == "complete":
        facts["output"] = text.value(instance.output, terminal.width)
    if instance.unreached:
        facts["unreached"] = (
            f"steps {', '.join(map(str, instance.unreached))}, which the code did not call again"
        )
    for name, said in facts.items():
        yield text.cut(f"{name:<12}{said}", terminal.width)


def _trace(error: object) -> Iterator[str]:
    if isinstance(error, dict):
        for line in str(error.get("traceback") or "").splitlines():
            yield INDENT + text.shown(line)


def _steps(terminal: Terminal, found: Record, *, full: bool) -> Iterator[str]:
    now, depths, items = found.facts.now, _depths(found.steps), _items(found)
    maps = {step.seq for step in found.steps if step.kind == "map"}
    cells = [("#", "STATUS", "KIND", "TRIES", "STARTED", "TOOK", "STEP")]
    for step in found.steps:
        name = f"{step.name}[{step.count - 1}]" if step.parent in maps else str(step)
        tries = str(step.attempts) if step.kind == "do" else "-"
        times = text.ago(step.started_at, now), text.took(step.started_at, step.finished_at)
        named = INDENT * depths[step.seq] + text.plain(name)
        cells.append((str(step.seq), step.status, step.kind, tries, *times, named))
    written = text.columns(cells)
    yield text.GAP.join(next(written))
    for step, cell in zip(found.steps, written, strict=True):
        line = text.cut(text.GAP.join(cell), terminal.width)
        yield line.replace(cell[1], terminal.paint(step.status, cell[1]), 1)
        if step.seq in items:
            said = ", ".join(f"{number:,} {status}" for status, number in items[step.seq].items())
            yield f"{INDENT * 3}of its items {said}"
        yield from _beneath(terminal, step, found.attempts.get(step.seq, ()), full=full)


def _items(found: Record) -> dict[int, dict[str, int]]:
    """Count the items of maps and parallels by their status."""
    items: dict[int, dict[str, int]] = {}
    groups = [step.seq for step in found.steps if step.kind in GROUPS]
    for inside in count_inside(found.instance, groups):
        of_group = items.setdefault(inside.parent, {})
        of_group[inside.status] = of_group.get(inside.status, 0) + inside.count
    return items


def _depths(steps: Sequence[Step]) -> dict[int, int]:
    """Return the depth of each step; a step whose parent is not shown has depth 0."""
    depths: dict[int, int] = {}
    for step in steps:
        depths[step.seq] = depths.get(step.parent, -1) + 1
    return depths


def _beneath(terminal: Terminal, step: Step, attempts: Sequence[Attempt], *, full: bool) -> Iterator[str]:
    """Yield what does not fit into a step's line: failed attempts, what was kept, rolled back or returned."""
    indent = INDENT * 3
    if step.kept_from is not None:
        yield f"{indent}kept from generation {step.kept_from}"
    for attempt in attempts:
        if attempt.error is None and attempt.status in ("complete", "running"):
            continue
        what = "rollback" if attempt.phase == "rollback" else "attempt"
        after = text.took(attempt.started_at, attempt.finished_at)
        said = f"{what} {attempt.number} {attempt.status} after {after}"
        yield text.cut(
            text.plain(f"{said}: {error_line(attempt.error)}".rstrip(": ")), terminal.width - 6
        ).join((indent, ""))
        if full:
            yield from (indent + line for line in _trace(attempt.error))
    if step.error is not None and not attempts:
        yield indent + text.cut(text.plain(error_line(step.error)), terminal.width - len(indent))
    if step.rollback:
        yield f"{indent}rollback {step.rollback}"
    if full and step.status == "complete":
        shown = "(a sensitive value)" if step.sensitive else text.value(step.output, terminal.width - 14)
        yield f"{indent}output  {shown}"


def _children(terminal: Terminal, found: Record) -> Iterator[str]:
    cells = [(child.status, str(child)) for child in found.children]
    for child, (status, name) in zip(found.children, text.columns(cells), strict=True):
        yield f"{terminal.paint(child.status, status)}{text.GAP}{name}"


def _generations(terminal: Terminal, found: Record) -> Iterator[str]:
    if not found.generations.earlier:
        return
    yield ""
    yield "EARLIER GENERATIONS (--generation shows one)"
    for one in found.generations.earlier:
        said = f"{one.number}  {terminal.paint(one.status)}  {text.moment(one.finished_at)}"
        why = error_line(one.last_problem)
        yield f"{said}  {text.cut(text.plain(why), max(terminal.width - len(said) - 2, 0))}".rstrip()


def _audit(terminal: Terminal, found: Record) -> Iterator[str]:
    if not found.audit:
        return
    yield ""
    yield "AUDIT"
    now = found.facts.now
    cells = [
        (
            text.ago(action.at, now),
            text.plain(action.actor) or "the engine",
            action.verb if action.outcome == "done" else f"{action.verb} ({action.outcome})",
            text.plain(action.reason),
        )
        for action in found.audit
    ]
    for cell in text.columns(cells):
        yield text.cut(text.GAP.join(cell).rstrip(), terminal.width)
