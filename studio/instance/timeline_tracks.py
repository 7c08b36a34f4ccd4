"""Turn the steps and attempts of an instance into the stretches of its timeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from engine.status.record import Record
from engine.status.sentences.bidi import isolated
from studio.instance import timeline
from studio.instance.steps.line import Line
from studio.instance.steps.nested import GROUPS

MOST_TRACKS = 60  # with a track for each step
FEW_TRACKS = 20


def timeline_of(found: Record, lines: Sequence[Line], *, is_newest: bool) -> timeline.Timeline:
    """Return the timeline of the steps on a page. `is_newest` means that no steps follow."""
    start, end = _span(found, lines, is_newest=is_newest)
    tracks = [
        timeline.Track(
            line.step.seq, line.label, line.depth, line.status, tuple(stretches_of(line, start, end))
        )
        for line in lines
    ]
    is_open = is_newest and not found.instance.is_finished
    return timeline.build(together(tracks), start=start, end=end, is_open=is_open, origin=_origin(found))


def together(tracks: Sequence[timeline.Track]) -> list[timeline.Track]:
    """Put many steps on a few tracks, in order: the list of steps below has a row for each."""
    if len(tracks) <= MOST_TRACKS:
        return list(tracks)
    size = -(-len(tracks) // FEW_TRACKS)
    return [_as_one(tracks[at : at + size]) for at in range(0, len(tracks), size)]


def _as_one(some: Sequence[timeline.Track]) -> timeline.Track:
    worst = next((one.status for one in some if one.status in timeline.FAILED), some[-1].status)
    stretches = tuple(
        replace(stretch, step=f"{one.seq} {isolated(one.name)}") for one in some for stretch in one.stretches
    )
    return timeline.Track(some[0].seq, f"to {some[-1].seq}", 0, worst, stretches)


def _origin(found: Record) -> datetime:
    return found.began_at if found.generations.shown > 1 else found.instance.created_at


def _span(found: Record, lines: Sequence[Line], *, is_newest: bool) -> tuple[datetime, datetime]:
    """Return the start and end of the line: those of the generation, or of the shown part of many steps."""
    now = found.facts.now
    end = found.instance.finished_at or now
    start = _origin(found)
    ran = [line.step for line in lines if line.step.kept_from is None]
    if lines and lines[0].step.seq > 1 and ran:
        start = ran[0].started_at
    if lines and not is_newest:
        end = max((step.finished_at or now for step in ran), default=start)
    return start, end


def stretches_of(line: Line, start: datetime, end: datetime) -> Iterator[timeline.Stretch]:
    """Yield the stretches of a step. `end` is now while the instance is open.

    A kept step ran before `start` and is shown there.
    """
    if line.step.kept_from is not None:
        yield timeline.Stretch("kept", line.status, start, start, line.step.kept_from)
    else:
        yield from _life(line, end)
    yield from _undoing(line, end)


def _undoing(line: Line, end: datetime) -> Iterator[timeline.Stretch]:
    """Yield the stretches of the attempts at its rollback."""
    reached = None
    for attempt in reversed(line.undone):
        if reached is not None and attempt.started_at > reached:
            yield timeline.Stretch("backoff", "retrying", reached, attempt.started_at)
        reached = attempt.finished_at or end
        is_open = attempt.finished_at is None
        yield timeline.Stretch("undo", attempt.status, attempt.started_at, reached, attempt.number, is_open)


def _life(line: Line, end: datetime) -> Iterator[timeline.Stretch]:
    step = line.step
    until = step.finished_at or end
    if step.kind in GROUPS:
        yield timeline.Stretch("group", line.status, step.started_at, until, is_open=not step.finished_at)
        return
    if step.kind in ("sleep", "event", "request", "child"):
        yield timeline.Stretch("sleep", line.status, step.started_at, until, is_open=not step.finished_at)
        return
    if step.kind == "progress":
        yield timeline.Stretch("mark", line.status, step.started_at, step.started_at)
        return
    reached = step.started_at
    for attempt in reversed(line.tries):
        if attempt.started_at > reached and attempt.number > 1:
            yield timeline.Stretch("backoff", "retrying", reached, attempt.started_at)
        reached = attempt.finished_at or until
        yield timeline.Stretch(
            "solid", attempt.status, attempt.started_at, reached, attempt.number, not attempt.finished_at
        )
    if step.status == "waiting" and reached < end:
        kind, status = ("held", "paused") if step.is_exhausted else ("backoff", "retrying")
        yield timeline.Stretch(kind, status, reached, end, is_open=True)
