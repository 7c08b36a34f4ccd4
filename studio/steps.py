"""The steps of an instance with all their attempts, arranged for the page: in tree order, newest attempt first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from engine.models import Attempt, Event, Log, Step
from engine.status.errors import error_line
from engine.status.rollbacks import counts, most_attempts
from engine.steer.requests import Asked
from engine.values.identity import TOP
from studio import payloads
from studio.display_status import display_status_of_step
from studio.failures import Failure, failure
from studio.nested_steps import LEFT, NestedSteps

ICONS = {
    "do": "square-function",
    "sleep": "moon",
    "event": "inbox",
    "request": "user",
    "child": "workflow",
    "parallel": "git-fork",
    "map": "layers",
    "progress": "flag",
}
PASSING = {"branch": "through", "last": "none"}  # what a line is for the steps below the one it leads to
INLINE = 8 * 1024  # a step's own payload; more of it is a download


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt, with the gap before it."""

    number: int
    status: str
    worker: str
    started_at: datetime
    finished_at: datetime | None
    failure: Failure | None
    gap: timedelta | None
    likeness: str  # "same error" or "differs" from the attempt before, where both failed

    @property
    def took(self) -> timedelta | None:
        return self.finished_at - self.started_at if self.finished_at else None


@dataclass(frozen=True, slots=True)
class Line:
    """A step with its attempts, newest first."""

    step: Step
    tree: tuple[str, ...]  # the lines that lead to it, one a level
    is_item: bool
    status: str
    tries: tuple[Try, ...]
    output: payloads.Payload | None
    failure: Failure | None
    event: Event | None
    max_attempts: int | None
    logs: tuple[Log, ...]
    nested: NestedSteps | None = None  # of the steps within it, where they are not shown
    undone: tuple[Try, ...] = ()  # attempts at its rollback
    undone_counted: int = 0  # how many of them count towards
    undone_of: int | None = None  # so many that there may be
    paused_at: datetime | None = None
    place: str = ""  # begins the queries of links: not empty where an earlier generation is shown

    @property
    def left(self) -> timedelta | None:
        """What is left of its time while the instance stands paused; a time that was given as a date runs on."""
        wake_at = self.step.wake_at
        if self.paused_at is None or wake_at is None or self.is_final or self.step.wake_is_fixed:
            return None
        return max(wake_at - self.paused_at, timedelta(0))

    @property
    def state(self) -> tuple[object, ...]:
        """What its drawing depends on, for steps that have ended: nothing else of them changes."""
        event = self.event.key if self.event else None
        inside = self.nested.state if self.nested else None
        undoing = self.step.rollback, self.step.wake_at, tuple(one.status for one in self.undone)
        of_step = self.step.pk, self.step.status, self.step.attempts
        return *of_step, self.tree, len(self.logs), event, inside, undoing, self.place

    @property
    def is_final(self) -> bool:
        return self.step.finished_at is not None

    @property
    def depth(self) -> int:
        return len(self.tree)

    @property
    def label(self) -> str:
        """Its name; items of a map are told apart by their index, as in errors, and milestones by what they say."""
        if self.step.is_old_milestone and self.output is not None:
            return payloads.milestone(self.output)[0]
        return f"{self.step.name}[{self.step.count - 1}]" if self.is_item else str(self.step)

    @property
    def icon(self) -> str:
        return ICONS.get(self.step.kind, "square-function")

    @property
    def may_restart(self) -> bool:
        """Whether the instance can be restarted from it: it is of the handler, and of the newest generation."""
        return self.step.parent == TOP and not self.place

    @property
    def key(self) -> str:
        """What names it in the address of a restart."""
        return f"{self.step.kind}:{self.step.name}:{self.step.count}"

    @property
    def relative(self) -> tuple[str, str] | None:
        """Workflow and id of the instance that it started or waits for."""
        options = self.step.options if isinstance(self.step.options, dict) else {}
        found = options.get("workflow"), options.get("id")
        is_one = self.step.kind == "child" and all(isinstance(one, str) and one for one in found)
        return (str(found[0]), str(found[1])) if is_one else None

    @property
    def anchor(self) -> str:
        return f"s-{self.step.seq}"

    @property
    def took(self) -> timedelta | None:
        return self.step.finished_at - self.step.started_at if self.step.finished_at else None

    @property
    def counted(self) -> int:
        """How many of its attempts count towards max_attempts: not those that were lost with a worker or drained."""
        return sum(one.status not in ("lost", "cancelled") for one in self.tries)

    @property
    def question(self) -> Asked | None:
        """What a request asks."""
        return Asked.of(self.step) if self.step.kind == "request" else None

    @property
    def answer(self) -> payloads.Payload | None:
        """What somebody answered to a request."""
        given = self.event.payload if self.event is not None and self.step.kind == "request" else None
        if self.event is None or not isinstance(given, dict):
            return None
        text = payloads.stored_text(given.get("value"))
        return payloads.payload(f"event-{self.event.key}", text, full_up_to=INLINE)

    @property
    def comment(self) -> str:
        given = self.event.payload if self.event is not None else None
        return str(given.get("comment") or "") if isinstance(given, dict) and self.question else ""

    @property
    def preview(self) -> str:
        if self.answer is not None:
            return payloads.preview(self.answer.text)
        if self.question is not None and not self.failure:
            return payloads.preview(self.question.message)
        if self.output is not None and not self.output.is_masked:
            is_milestone = self.step.kind == "progress"  # whose label says the rest
            return payloads.milestone(self.output)[1] if is_milestone else payloads.preview(self.output.text)
        return payloads.preview(f"{self.failure.type}: {self.failure.message}") if self.failure else ""


def lines_of(
    steps: Sequence[Any],
    attempts: Mapping[int, Sequence[Attempt]],
    events: Sequence[Event],
    logs: Sequence[Log],
    nested: Mapping[int, NestedSteps],
    *,
    items_of: int = 0,
    left_by: int = 0,
    paused_at: datetime | None = None,
    place: str = "",
) -> Iterator[Line]:
    """Join steps with their attempts, the events they took and what they logged.

    `nested` counts what is within a step and not among `steps`; `items_of` is the map whose items these are, `left_by`
    the parallel that has left branches to themselves.
    """
    # An event stays with the generation in which a wait took it, also where that wait was kept.
    consumed = {(event.consumed_generation, event.consumed_by): event for event in events}
    said: dict[int, list[Log]] = {}
    for log in logs:
        if log.step_seq is not None:
            said.setdefault(log.step_seq, []).append(log)
    for step, tree in in_tree_order(steps):
        options = step.options if isinstance(step.options, dict) else {}
        most = options.get("max_attempts")
        yield Line(
            step=step,
            tree=tree,
            is_item=items_of != 0 and step.parent == items_of,
            status=LEFT
            if left_by and step.status == "cancelled"
            else display_status_of_step(step.status, step.kind),
            tries=tuple(_tries(attempts.get(step.seq, ()))),
            undone=tuple(_tries(attempts.get(step.seq, ()), phase="rollback")),
            undone_counted=sum(
                one.phase == "rollback" and counts(one, step) for one in attempts.get(step.seq, ())
            ),
            undone_of=most_attempts(step) if step.rollback else None,
            output=_output(step),
            failure=failure(step.error),
            event=consumed.get((step.kept_from or step.generation, step.seq)),
            max_attempts=most if isinstance(most, int) and step.kind == "do" else None,
            logs=tuple(said.get(step.seq, ())),
            nested=nested.get(step.seq),
            paused_at=paused_at,
            place=place,
        )


def in_tree_order(steps: Sequence[Any]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Give each step, children right after their parent, with the lines that lead to it: one a level.

    `through` passes by to a later one, `branch` and `last` lead to this one; `none` is empty.
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
    """Give the attempts newest first, each with the time that passed since the one before it."""
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
            gap=attempt.started_at - before.finished_at if before and before.finished_at else None,
            likeness=likeness,
        )
