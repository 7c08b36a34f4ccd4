"""`workflow show`: where an instance stands and why, with its steps, attempts, events, children and audit trail."""

from __future__ import annotations

import textwrap
from argparse import ArgumentParser
from collections.abc import Iterator

from engine.command import record, text
from engine.command.address import find, natural, take_instance, take_limit
from engine.command.events import event_lines
from engine.command.record import Record
from engine.command.subcommand import Options, Subcommand
from engine.command.terminal import Desk
from engine.models import Attempt, Step
from engine.status.errors import error_line

INDENT = "  "


def _arguments(parser: ArgumentParser) -> None:
    take_instance(parser)
    parser.add_argument(
        "--full",
        action="store_true",
        help="with the outputs of steps, all items of maps, payloads of events and tracebacks",
    )
    parser.add_argument(
        "--generation", type=natural, metavar="N", help="an earlier one, as it stood when it ended"
    )
    take_limit(parser, "steps, and events, children and deeds,")


def _show(desk: Desk, options: Options) -> None:
    full = options["full"]
    found = record.read(
        find(options["instance"]),
        options["limit"],
        full=full,
        generation=options["generation"],
        folds=not (full or desk.is_json),
    )
    desk.answer(record.shape(found, full=full), lambda: _lines(desk, found, full=full))


SHOW = Subcommand("show", "show one instance", _arguments, _show)


def _lines(desk: Desk, found: Record, *, full: bool) -> Iterator[str]:
    yield from _head(desk, found)
    if full and found.instance.error:
        yield ""
        yield from _trace(found.instance.error)
    if found.steps:
        yield ""
        yield f"STEPS{_of(len(found.steps), found.steps_total)}"
        yield from _steps(desk, found, full=full)
    if found.events:
        yield ""
        yield f"EVENTS{_of(len(found.events), found.events_total)}"
        yield from event_lines(desk, found.events, full=full)
    if found.children:
        yield ""
        yield f"CHILDREN{_of(len(found.children), found.children_total)}"
        yield from _children(desk, found)
    yield from _generations(desk, found)
    yield from _audit(desk, found)


def _of(shown: int, total: int) -> str:
    return "" if shown == total else f" (the newest {shown:,} of {total:,}; --limit shows more)"


def _head(desk: Desk, found: Record) -> Iterator[str]:
    instance, now = found.instance, found.facts.now
    yield f"{instance}  {desk.paint(instance.status)}"
    yield from textwrap.wrap(text.plain(found.why), desk.width)
    yield ""
    by = f" by {text.plain(instance.started_by)}" if instance.started_by else ""
    facts = {"created": f"{text.moment(instance.created_at)} ({text.ago(instance.created_at, now)}){by}"}
    if instance.finished_at:
        span = text.took(found.began_at, instance.finished_at)
        ended = text.ago(instance.finished_at, now)
        facts["finished"] = f"{text.moment(instance.finished_at)} ({ended}, after {span})"
    if instance.generation > 1 or found.generations:
        facts["generation"] = str(instance.generation)
    if instance.rollback:
        facts["rollback"] = instance.rollback
    if instance.tags:
        facts["tags"] = text.plain(", ".join(instance.tags))
    if found.parent:
        facts["parent"] = str(found.parent)
    if instance.params is not None:
        facts["params"] = text.value(instance.params, desk.width)
    if instance.status == "complete":
        facts["output"] = text.value(instance.output, desk.width)
    if instance.unreached:
        facts["unreached"] = (
            f"steps {', '.join(map(str, instance.unreached))}, which the code did not call again"
        )
    for name, said in facts.items():
        yield text.cut(f"{name:<12}{said}", desk.width)


def _trace(error: object) -> Iterator[str]:
    if isinstance(error, dict):
        for line in str(error.get("traceback") or "").splitlines():
            yield INDENT + text.shown(line)


def _steps(desk: Desk, found: Record, *, full: bool) -> Iterator[str]:
    now, depths = found.facts.now, _depths(found.steps)
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
        line = text.cut(text.GAP.join(cell), desk.width)
        yield line.replace(cell[1], desk.paint(step.status, cell[1]), 1)
        if step.seq in found.items:
            said = ", ".join(f"{number:,} {status}" for status, number in found.items[step.seq].items())
            yield f"{INDENT * 3}of its items {said}"
        yield from _beneath(desk, step, found.attempts.get(step.seq, []), full=full)


def _depths(steps: list[Step]) -> dict[int, int]:
    """Tell how deep each step lies; one whose parent is not shown stands at the top."""
    depths: dict[int, int] = {}
    for step in steps:
        depths[step.seq] = depths.get(step.parent, -1) + 1
    return depths


def _beneath(desk: Desk, step: Step, attempts: list[Attempt], *, full: bool) -> Iterator[str]:
    """Tell what a step's line has no room for: attempts that failed, what was kept, undone or returned."""
    indent = INDENT * 3
    if step.kept_from is not None:
        yield f"{indent}kept from generation {step.kept_from}"
    for attempt in attempts:
        if attempt.error is None and attempt.status in ("complete", "running"):
            continue
        what = "rollback" if attempt.phase == "rollback" else "attempt"
        after = text.took(attempt.started_at, attempt.finished_at)
        said = f"{what} {attempt.number} {attempt.status} after {after}"
        yield text.cut(text.plain(f"{said}: {error_line(attempt.error)}".rstrip(": ")), desk.width - 6).join(
            (indent, "")
        )
        if full:
            yield from (indent + line for line in _trace(attempt.error))
    if step.error is not None and not attempts:
        yield indent + text.cut(text.plain(error_line(step.error)), desk.width - len(indent))
    if step.rollback:
        yield f"{indent}rollback {step.rollback}"
    if full and step.status == "complete":
        shown = "(a sensitive value)" if step.sensitive else text.value(step.output, desk.width - 14)
        yield f"{indent}output  {shown}"


def _children(desk: Desk, found: Record) -> Iterator[str]:
    cells = [(child.status, str(child)) for child in found.children]
    for child, (status, name) in zip(found.children, text.columns(cells), strict=True):
        yield f"{desk.paint(child.status, status)}{text.GAP}{name}"


def _generations(desk: Desk, found: Record) -> Iterator[str]:
    if not found.generations:
        return
    yield ""
    yield "EARLIER GENERATIONS (--generation shows one)"
    for one in found.generations:
        said = f"{one.number}  {desk.paint(one.status)}  {text.moment(one.finished_at)}"
        why = error_line(one.error)
        yield f"{said}  {text.cut(text.plain(why), max(desk.width - len(said) - 2, 0))}".rstrip()


def _audit(desk: Desk, found: Record) -> Iterator[str]:
    if not found.audit:
        return
    yield ""
    yield "AUDIT"
    now = found.facts.now
    cells = [
        (
            text.ago(deed.at, now),
            text.plain(deed.actor) or "the engine",
            deed.verb if deed.outcome == "done" else f"{deed.verb} ({deed.outcome})",
            text.plain(deed.reason),
        )
        for deed in found.audit
    ]
    for cell in text.columns(cells):
        yield text.cut(text.GAP.join(cell).rstrip(), desk.width)
