"""Turn the steps and attempts of an instance into the stretches of its timeline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from engine.status.record import Record
from studio.instance import timeline
from studio.instance.steps.line import Line
from studio.instance.steps.nested import GROUPS

START = 0  # the number of the first row, which is no step


def timeline_of(
    found: Record, lines: Sequence[Line], *, is_newest: bool, is_unfolded: bool = False
) -> timeline.Timeline:
    """Return the timeline of the steps on a page. `is_newest` means that no steps follow."""
    start, end = _span(found, lines, is_newest=is_newest)
    tracks = [timeline.Track(line.step.seq, tuple(stretches_of(line, start, end))) for line in lines]
    if is_newest and start == _origin(found):
        tracks.insert(0, timeline.Track(START, tuple(_queued(found, lines, start, end))))
    is_open = is_newest and not found.instance.is_finished
    return timeline.build(
        tracks, start=start, end=end, is_open=is_open, origin=_origin(found), is_unfolded=is_unfolded
    )


def _queued(
    found: Record, lines: Sequence[Line], start: datetime, end: datetime
) -> Iterator[timeline.Stretch]:
    """Yield how long the instance waited for its first step."""
    ran = [line.step.started_at for line in lines if line.step.kept_from is None]
    until = min(ran, default=end)
    is_to_come = (found.facts.starts_at or start) > found.facts.now
    if until > start and not is_to_come and (ran or not found.instance.is_finished):
        yield timeline.Stretch("queued", "queued", start, until, is_open=not ran)


def _origin(found: Record) -> datetime:
    if found.generations.shown > 1:
        return found.began_at
    at = found.instance.starts_at
    # The wait for its time is no wait for a worker.
    return at if at is not None and at <= found.facts.now else found.instance.created_at


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
        yield from _held_back(line, reached, end)


def _held_back(line: Line, reached: datetime, end: datetime) -> Iterator[timeline.Stretch]:
    """Yield what follows its last attempt: a back-off with the next attempt, or a decision."""
    if line.step.is_exhausted:
        yield timeline.Stretch("held", "paused", reached, end, is_open=True)
        return
    wake_at = line.step.wake_at
    until = end if wake_at is None or line.paused_at else max(wake_at, end)
    yield timeline.Stretch("backoff", "retrying", reached, until, is_open=until == end)
    if wake_at is not None and line.paused_at is None:
        yield timeline.Stretch("next", "retrying", max(wake_at, end), wake_at, line.step.attempts + 1)
