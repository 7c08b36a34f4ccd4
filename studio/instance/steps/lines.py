"""Arrange steps and attempts for the page: in tree order, newest attempt first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from engine.models import Attempt, Event, Log
from engine.status.errors import error_line
from engine.status.steps import most_rollback_attempts, retried_after, rollback_attempt_counts
from studio.display import payloads
from studio.display.status import display_status_of_step
from studio.instance.steps.failures import failure
from studio.instance.steps.line import INLINE, Line, Try
from studio.instance.steps.nested import LEFT, NestedSteps, leaves

LOGS_SHOWN = 200  # lines of a log, the newest
PASSING = {"branch": "through", "last": "none"}  # how a line of the tree continues below a step


def lines_of(
    steps: Sequence[Any],
    attempts: Mapping[int, Sequence[Attempt]],
    events: Sequence[Event],
    logs: Sequence[Log],
    nested: Mapping[int, NestedSteps],
    *,
    around: Sequence[Any] = (),
    paused_at: datetime | None = None,
    place: str = "",
) -> Iterator[Line]:
    """Join steps with their attempts, the events they consumed and their logs.

    `nested` has the counts of folded steps by parent. `around` are parents of these that are not among them.
    """
    # An event belongs to the generation in which a wait consumed it, even if a later one kept that wait.
    taken = {(event.consumed_generation, event.consumed_by): event for event in events}
    said = _by_step(logs)
    parents = [*steps, *around]
    maps = {one.seq for one in parents if one.kind == "map"}
    parallels = {one.seq: one.name for one in parents if one.kind == "parallel"}
    left = {one.seq for one in parents if leaves(one)}
    for step, tree in in_tree_order(steps):
        line = _line(step, attempts.get(step.seq, ()))
        yield replace(
            line,
            tree=tree,
            is_item=step.parent in maps,
            is_branch=parallels.get(step.parent) == step.name,
            status=LEFT if step.parent in left and step.status == "cancelled" else line.status,
            event=taken.get((step.kept_from or step.generation, step.seq)),
            logs=tuple(said.get(step.seq, ())),
            nested=nested.get(step.seq),
            paused_at=paused_at,
            place=place,
        )


def _line(step: Any, attempts: Sequence[Attempt]) -> Line:
    """Return the line of a step with its attempts, without its surroundings."""
    options = step.options if isinstance(step.options, dict) else {}
    most = options.get("max_attempts")
    return Line(
        step=step,
        status="paused" if _is_exhausted(step) else display_status_of_step(step.status, step.kind),
        tries=tuple(_tries(attempts)),
        output=_output(step),
        failure=failure(step.error),
        retried_after=retried_after(step),
        max_attempts=most if isinstance(most, int) and step.kind == "do" else None,
        undone=tuple(_tries(attempts, phase="rollback")),
        undone_counted=sum(
            one.phase == "rollback" and rollback_attempt_counts(one, step) for one in attempts
        ),
        undone_of=most_rollback_attempts(step) if step.rollback else None,
    )


def _is_exhausted(step: Any) -> bool:
    """Return whether its attempts are used up and somebody has to decide what follows."""
    return bool(step.status == "waiting" and step.error is not None)


def _by_step(logs: Sequence[Log]) -> Mapping[int, Sequence[Log]]:
    said: dict[int, list[Log]] = {}
    for log in logs:
        if log.step_seq is not None:
            said.setdefault(log.step_seq, []).append(log)
    return said


def in_tree_order(steps: Sequence[Any]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield each step, children right after their parent, with the lines of the tree in front of it.

    `through` continues to a later step, `branch` and `last` lead to this one, `none` is empty.
    """
    children: dict[int, list[Any]] = {}
    known = {step.seq for step in steps}
    for step in steps:
        children.setdefault(step.parent if step.parent in known else 0, []).append(step)
    stack: list[tuple[Any, tuple[str, ...]]] = [(step, ()) for step in reversed(children.get(0, ()))]
    while stack:
        step, lines = stack.pop()
        yield step, lines
        on = tuple(PASSING.get(line, line) for line in lines)
        for place, child in enumerate(reversed(children.get(step.seq, ()))):
            stack.append((child, (*on, "branch" if place else "last")))


def _output(step: Any) -> payloads.Payload | None:
    if step.status != "complete" or step.output_text is None or step.kind in ("sleep", "event", "request"):
        return None
    what = f"step-{step.seq}" + (f"-g{step.generation}" if step.generation > 1 else "")
    if step.sensitive:
        return payloads.masked(what)
    return payloads.payload(what, step.output_text, step.output_size, full_up_to=INLINE)


def _tries(made: Sequence[Attempt], *, phase: str = "do") -> Iterator[Try]:
    """Yield the attempts, newest first, each with the gap since the one before."""
    attempts = [attempt for attempt in made if attempt.phase == phase]
    for i in range(len(attempts) - 1, -1, -1):
        attempt, before = attempts[i], attempts[i - 1] if i else None
        likeness = ""
        if before is not None and attempt.error and before.error:
            same = error_line(attempt.error) == error_line(before.error)
            likeness = f"same error as {before.number}" if same else f"differs from {before.number}"
        yield Try(
            number=attempt.number,
            status=attempt.status,
            worker=attempt.worker,
            started_at=attempt.started_at,
            finished_at=attempt.finished_at,
            failure=failure(attempt.error),
            gap_from=before.finished_at if before else None,
            likeness=likeness,
        )
