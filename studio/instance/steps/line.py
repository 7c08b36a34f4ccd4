"""A step with all its attempts, as the instance page shows it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.urls import get_script_prefix
from django.utils.translation import get_language

from engine.models import Event, Instance, Log, Step
from engine.status.sentences.bidi import isolated
from engine.steer.requests import Asked
from engine.values.identity import TOP
from studio.display import payloads
from studio.display.rendering import render_to_string
from studio.instance import timeline
from studio.instance.lane import lane
from studio.instance.steps.failures import Failure
from studio.instance.steps.nested import NestedSteps

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
INLINE = 8 * 1024  # of a step's payload; the rest is a download

# Ended steps do not change: for each change of a long instance, only open steps are rendered again.
_drawn: OrderedDict[tuple[object, ...], str] = OrderedDict()
_KEPT = 4_000


@dataclass(frozen=True, slots=True)
class Try:
    """An attempt, with the end of the one before, after which it waited."""

    number: int
    status: str
    worker: str
    started_at: datetime
    finished_at: datetime | None
    failure: Failure | None
    gap_from: datetime | None
    likeness: str  # "same error" or "differs" compared to the attempt before, if both failed


@dataclass(frozen=True, slots=True)
class Toggle:
    """What shows or hides rows of the steps inside one: `page` is the one that is shown, or 0. Then the addresses."""

    page: int
    pages: int
    address: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A step with its attempts, newest first."""

    step: Step
    status: str
    tries: tuple[Try, ...]
    output: payloads.Payload | None
    failure: Failure | None
    max_attempts: int | None
    retried_after: int = 0  # the number of attempts when a person last gave it new ones
    tree: tuple[str, ...] = ()  # the lines of the tree in front of it, one for each level
    is_item: bool = False
    is_branch: bool = False  # of a parallel, whose name it has
    event: Event | None = None
    logs: tuple[Log, ...] = ()
    nested: NestedSteps | None = None  # the steps inside it, if they are folded
    undone: tuple[Try, ...] = ()  # attempts at its rollback
    undone_counted: int = 0  # how many of those count towards
    undone_of: int | None = None  # this maximum
    paused_at: datetime | None = None
    place: str = ""  # start of the query strings of links; not empty in an earlier generation
    child: str = ""  # the params of the instance that it started, shortened
    child_id: str = ""  # the id of that instance, if it says something
    by: str = ""  # what tells that instance from its siblings, as short as it can be said
    toggle: Toggle | None = None  # if the steps inside it are folded

    @property
    def left(self) -> timedelta | None:
        """The remaining time of a timer while the instance is paused. Timers with a fixed date do not stop."""
        wake_at = self.step.wake_at
        if self.paused_at is None or wake_at is None or self.is_final or self.step.wake_is_fixed:
            return None
        return max(wake_at - self.paused_at, timedelta(0))

    @property
    def state(self) -> tuple[object, ...]:
        """What the HTML of an ended step depends on."""
        event = self.event.key if self.event else None
        inside = self.nested.state if self.nested else None
        undoing = self.step.rollback, self.step.wake_at, tuple(one.status for one in self.undone)
        of_step = self.step.pk, self.step.status, self.step.attempts
        return (
            *of_step,
            self.tree,
            len(self.logs),
            event,
            inside,
            undoing,
            self.place,
            self.child,
            self.toggle,
        )

    @property
    def is_final(self) -> bool:
        return self.step.finished_at is not None

    @property
    def depth(self) -> int:
        return len(self.tree)

    @property
    def label(self) -> str:
        """Its name. Items of a map have their index, as in errors; old milestones show their message."""
        if self.step.is_old_milestone and self.output is not None:
            return payloads.milestone(self.output)[0]
        return f"{self.step.name}[{self.step.count - 1}]" if self.is_item else str(self.step)

    @property
    def short_label(self) -> str:
        """Its name below the step that it is in."""
        return f"#{self.step.count}" if self.is_branch and self.by else self.label

    @property
    def icon(self) -> str:
        return ICONS.get(self.step.kind, "square-function")

    @property
    def may_restart(self) -> bool:
        """Whether the instance can restart from it: only steps of the handler, in the newest generation."""
        return self.step.parent == TOP and not self.place

    @property
    def key(self) -> str:
        """Its name in the address of a restart."""
        return f"{self.step.kind}:{self.step.name}:{self.step.count}"

    @property
    def relative(self) -> tuple[str, str] | None:
        """Workflow and id of the instance that it started or waits for, if any."""
        options = self.step.options if isinstance(self.step.options, dict) else {}
        found = options.get("workflow"), options.get("id")
        is_one = self.step.kind == "child" and all(isinstance(one, str) and one for one in found)
        return (str(found[0]), str(found[1])) if is_one else None

    @property
    def anchor(self) -> str:
        return f"s-{self.step.seq}"

    @property
    def address(self) -> str:
        """What names it in an address: name and count, or its number if it is inside another step."""
        return f"{self.step.name}-{self.step.count}" if self.step.parent == TOP else str(self.step.seq)

    @property
    def span(self) -> timedelta | None:
        """How long its newest attempt took."""
        newest = self.tries[0] if self.tries else None
        return newest.finished_at - newest.started_at if newest and newest.finished_at else None

    @property
    def folds(self) -> list[tuple[Try, ...]]:
        """Its attempts, newest first; neighbours with the same error are together."""
        found: list[list[Try]] = []
        for one in self.tries:
            if found and found[-1][-1].likeness.startswith("same"):
                found[-1].append(one)
            else:
                found.append([one])
        return [tuple(some) for some in found]

    @property
    def said(self) -> str:
        """What its bars show, in words."""
        failed = sum(one.failure is not None for one in self.tries)
        if len(self.tries) < 2 and not failed:
            return ""
        return f"{len(self.tries)} attempt{'s'[: len(self.tries) != 1]}: {failed} failed"

    @property
    def counted(self) -> int:
        """How many attempts count towards max_attempts: not those lost with a worker or drained, nor those before a
        person gave it new ones."""
        counting = (one for one in self.tries if one.number > self.retried_after)
        return sum(one.status not in ("lost", "cancelled") for one in counting)

    @property
    def is_exhausted(self) -> bool:
        """Whether its attempts are used up and somebody has to decide what follows."""
        return self.status == "paused"

    @property
    def may_skip(self) -> bool:
        """Whether a person may supply its output, if the instance allows that: not of nested steps."""
        is_outer = self.step.parent == TOP or self.is_item
        return self.step.kind == "do" and self.step.status == "waiting" and is_outer and not self.place

    @property
    def decision(self) -> dict[str, str] | None:
        """What a person has decided of it, and who."""
        options = self.step.options if isinstance(self.step.options, dict) else {}
        found = options.get("decision")
        return found if isinstance(found, dict) else None

    @property
    def question(self) -> Asked | None:
        """The question of a request."""
        return Asked.of(self.step) if self.step.kind == "request" else None

    @property
    def received(self) -> payloads.Payload | None:
        """The payload of the event for which it waited."""
        if self.event is None or self.step.kind != "event":
            return None
        text = payloads.stored_text(self.event.payload)
        return payloads.payload(f"event-{self.event.key}", text, full_up_to=INLINE)

    @property
    def answer(self) -> payloads.Payload | None:
        """The answer to a request."""
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
        if self.event is not None and self.answer is not None:
            by = f"{isolated(self.event.sent_by)}: " if self.event.sent_by else ""
            return f"{by}{payloads.preview(self.answer.text)}"
        if self.received is not None:
            return payloads.preview(self.received.text)
        if self.question is not None and not self.failure:
            return payloads.preview(self.question.message)
        if self.output is not None and not self.output.is_masked:
            is_milestone = self.step.kind == "progress"  # its label has the message
            return payloads.milestone(self.output)[1] if is_milestone else payloads.preview(self.output.text)
        return payloads.preview(f"{self.failure.type}: {self.failure.message}") if self.failure else ""


def row_html(line: Line, instance: Instance, drawn: timeline.Line | None) -> str:
    """Render the row of a step with its bars."""
    state = "row", *line.state, drawn
    return _kept("row", state, line, {"line": line, "instance": instance, "lane": lane(drawn)})


def step_html(line: Line, instance: Instance, *, inner: str = "") -> str:
    """Render a step in a list of nested ones. `inner` is the HTML of the steps inside it, if they are open."""
    context = {"line": line, "instance": instance, "inner": inner}
    if inner:
        return render_to_string("studio/instance/steps/step.html", context)
    return _kept("step", ("step", *line.state), line, context)


def _kept(name: str, state: tuple[object, ...], line: Line, context: dict[str, object]) -> str:
    """Render it, unless it is about an ended step and has been rendered in that state."""
    state = get_script_prefix(), get_language(), *state  # of its links
    kept = _drawn.get(state) if line.is_final else None
    if kept is not None:
        return kept
    html = render_to_string(f"studio/instance/steps/{name}.html", context)
    if line.is_final:
        _drawn[state] = html
        while len(_drawn) > _KEPT:
            _drawn.popitem(last=False)
    return html
