"""All that the page of one instance shows, read with a fixed number of queries and arranged for its template."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import TextField
from django.db.models.functions import Cast, Left, Length

from engine.models import Attempt, Audit, Event, Instance, Log, Step
from engine.states import Action, allows
from studio import payloads, queries, timeline, why
from studio.rows import error_line, last_deeds, open_step, situation
from studio.shown import shown, step_shown

STEPS_SHOWN = 500
TIMELINE_LINES = 500
LOGS_SHOWN = 200
EVENTS_SHOWN = 100
INLINE = 8 * 1024  # a step's own payload; more of it is a download


@dataclass(frozen=True, slots=True)
class Failure:
    """A recorded error, for people."""

    type: str
    message: str
    traceback: tuple[tuple[str, bool], ...]  # (line, is the application's own)

    @property
    def own_frames(self) -> int:
        return sum(1 for line, is_own in self.traceback if is_own and line.lstrip().startswith("File "))

    @property
    def text(self) -> str:
        return "\n".join(line for line, _ in self.traceback)


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
    depth: int
    status: str
    tries: tuple[Try, ...]
    output: payloads.Payload | None
    failure: Failure | None
    event: Event | None
    max_attempts: int | None
    logs: tuple[Log, ...]

    @property
    def anchor(self) -> str:
        return f"s-{self.step.seq}"

    @property
    def took(self) -> timedelta | None:
        return self.step.finished_at - self.step.started_at if self.step.finished_at else None

    @property
    def of(self) -> int | None:
        """How many attempts it has in all: those that a dying worker lost are extra."""
        return self.max_attempts + self.step.lost if self.max_attempts else None

    @property
    def preview(self) -> str:
        if self.output is not None and not self.output.is_masked:
            return (
                payloads.milestone(self.output)
                if self.step.kind == "progress"
                else payloads.preview(self.output.text)
            )
        return payloads.preview(f"{self.failure.type}: {self.failure.message}") if self.failure else ""


@dataclass(frozen=True, slots=True)
class Dossier:
    """One instance, ready to be drawn."""

    instance: Instance
    now: datetime
    status: str
    why: why.Sentence
    lines: tuple[Line, ...]
    steps_total: int
    timeline: timeline.Timeline
    events: tuple[tuple[Event, payloads.Payload], ...]
    logs: tuple[Log, ...]
    trail: tuple[Audit, ...]
    params: payloads.Payload
    output: payloads.Payload | None
    failure: Failure | None
    wanted_events: tuple[str, ...]

    @property
    def started_at(self) -> datetime:
        return self.instance.started_at or self.instance.created_at

    @property
    def is_pausing(self) -> bool:
        return self.instance.status == "waiting_for_pause"

    @property
    def took(self) -> timedelta | None:
        finished = self.instance.finished_at
        return finished - self.started_at if finished else None

    def may(self, action: Action) -> bool:
        return allows(action, self.instance.status)

    @property
    def may_pause(self) -> bool:
        return self.may(Action.PAUSE)

    @property
    def may_resume(self) -> bool:
        return self.may(Action.RESUME)

    @property
    def may_terminate(self) -> bool:
        return self.may(Action.TERMINATE)

    @property
    def may_send(self) -> bool:
        return self.may(Action.SEND_EVENT)

    @property
    def unfinished(self) -> bool:
        return not self.instance.is_finished


def of(workflow: str, id: str) -> Dossier:
    """Read it by workflow and id; raises Instance.DoesNotExist."""
    return _read(_instances().get(workflow=workflow, id=id))


def of_key(key: int) -> Dossier:
    """Read it by key; raises Instance.DoesNotExist."""
    return _read(_instances().get(key=key))


def _instances() -> Any:
    beginning = payloads.FULL_UP_TO + 1
    return Instance.objects.defer("params", "output").annotate(
        params_text=Left(Cast("params", TextField()), beginning),
        params_size=Length(Cast("params", TextField())),
        output_text=Left(Cast("output", TextField()), beginning),
        output_size=Length(Cast("output", TextField())),
    )


def _read(instance: Any) -> Dossier:
    now = queries.database_now()
    generation = {"instance_id": instance.key, "generation": instance.generation}
    steps = list(
        Step.objects.filter(**generation)
        .defer("output")
        .annotate(
            output_text=Left(Cast("output", TextField()), INLINE + 1),
            output_size=Length(Cast("output", TextField())),
        )
        .order_by("seq")[:STEPS_SHOWN]
    )
    steps_total = len(steps)
    if steps_total == STEPS_SHOWN:
        steps_total = Step.objects.filter(**generation).count()
    attempts = _by_step(
        Attempt.objects.filter(
            **generation, phase="do", step_seq__lte=steps[-1].seq if steps else 0
        ).order_by("step_seq", "number")
    )
    events = list(Event.objects.filter(instance_id=instance.key).order_by("-key")[:EVENTS_SHOWN])
    logs = list(
        Log.objects.filter(instance_id=instance.key, generation=instance.generation).order_by("-key")[
            :LOGS_SHOWN
        ]
    )[::-1]
    trail = Audit.objects.filter(instance_key=instance.key).order_by("-key")[:50]
    lines = tuple(_lines(steps, attempts, events, logs))
    servers = queries.servers_of([instance.workflow])[instance.workflow]
    still_open = [
        open_step(step, attempts[step.seq][-1] if attempts.get(step.seq) else None)
        for step in steps
        if step.status in ("running", "waiting")
    ]
    error = instance.error if isinstance(instance.error, dict) else None
    facts = situation(
        instance,
        now=now,
        servers=servers,
        steps=still_open,
        deed=last_deeds([instance]).get(instance.key),
        error=error,
        steps_complete=sum(1 for step in steps if step.status == "complete" and not step.parent),
    )
    return Dossier(
        instance=instance,
        now=now,
        status=shown(instance.status, instance.waiting_for),
        why=why.explain(facts),
        lines=lines,
        steps_total=steps_total,
        timeline=_timeline(instance, lines, now),
        events=tuple((event, _event_payload(event)) for event in events),
        logs=tuple(logs),
        trail=tuple(trail),
        params=payloads.payload("params", instance.params_text or "null", instance.params_size),
        output=(
            payloads.payload("output", instance.output_text or "null", instance.output_size)
            if instance.status == "complete"
            else None
        ),
        failure=failure(error),
        wanted_events=tuple(
            name
            for step in still_open
            if step.kind == "event" and step.is_waiting
            for name in step.event_types or (step.name,)
        ),
    )


def _by_step(attempts: Iterable[Attempt]) -> dict[int, list[Attempt]]:
    found: dict[int, list[Attempt]] = {}
    for attempt in attempts:
        found.setdefault(attempt.step_seq, []).append(attempt)
    return found


def _lines(
    steps: Sequence[Any], attempts: dict[int, list[Attempt]], events: Sequence[Event], logs: Sequence[Log]
) -> Iterator[Line]:
    consumed = {event.consumed_by: event for event in events if event.consumed_by is not None}
    said: dict[int, list[Log]] = {}
    for log in logs:
        if log.step_seq is not None:
            said.setdefault(log.step_seq, []).append(log)
    for step, depth in in_tree_order(steps):
        options = step.options if isinstance(step.options, dict) else {}
        most = options.get("max_attempts")
        yield Line(
            step=step,
            depth=min(depth, 3),
            status=step_shown(step.status, step.kind),
            tries=tuple(_tries(attempts.get(step.seq, []))),
            output=_output(step),
            failure=failure(step.error),
            event=consumed.get(step.seq),
            max_attempts=most if isinstance(most, int) and step.kind == "do" else None,
            logs=tuple(said.get(step.seq, ())),
        )


def in_tree_order(steps: Sequence[Any]) -> Iterator[tuple[Any, int]]:
    """Give each step with its depth, children right after their parent."""
    children: dict[int, list[Any]] = {}
    known = {step.seq for step in steps}
    for step in steps:
        children.setdefault(step.parent if step.parent in known else 0, []).append(step)
    stack = [(step, 0) for step in reversed(children.get(0, ()))]
    while stack:
        step, depth = stack.pop()
        yield step, depth
        stack += [(child, depth + 1) for child in reversed(children.get(step.seq, ()))]


def _output(step: Any) -> payloads.Payload | None:
    if step.status != "complete" or step.output_text is None or step.kind in ("sleep", "event"):
        return None
    what = f"step-{step.seq}"
    if step.sensitive:
        return payloads.masked(what)
    return payloads.payload(what, step.output_text, step.output_size, full_up_to=INLINE)


def _event_payload(event: Event) -> payloads.Payload:
    text = payloads.stored_text(event.payload)
    return payloads.payload(f"event-{event.key}", text, full_up_to=INLINE)


def _tries(attempts: Sequence[Attempt]) -> Iterator[Try]:
    """Give the attempts newest first, each with the time that passed since the one before it."""
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


_LIBRARY = (
    "/site-packages/",
    "/dist-packages/",
    "/lib/python",
    "/engine/replay/",
    "/engine/worker/",
    "<frozen ",
)


def failure(error: object) -> Failure | None:
    """Arrange a recorded error: its trace with the frames of libraries told from the program's own."""
    if not isinstance(error, dict):
        return None
    trace = str(error.get("traceback") or "")
    return Failure(
        type=str(error.get("type") or "Error"),
        message=str(error.get("message") or ""),
        traceback=tuple(_frames(trace.splitlines())),
    )


def _frames(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    is_own = True
    for line in lines:
        if line.lstrip().startswith("File "):
            is_own = not any(mark in line for mark in _LIBRARY)
        elif not line.startswith("    "):
            is_own = True
        yield line, is_own


def _timeline(instance: Instance, lines: Sequence[Line], now: datetime) -> timeline.Timeline:
    end = instance.finished_at or now
    start = min([instance.created_at, *(line.step.started_at for line in lines[:1])])
    tracks = [
        timeline.Track(line.step.seq, str(line.step), line.depth, line.status, tuple(_stretches(line, end)))
        for line in lines[:TIMELINE_LINES]
    ]
    return timeline.build(tracks, start=start, end=end, is_open=not instance.is_finished)


def _stretches(line: Line, end: datetime) -> Iterator[timeline.Stretch]:
    step = line.step
    until = step.finished_at or end
    if step.kind in ("sleep", "event"):
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
        yield timeline.Stretch("backoff", "retrying", reached, end, is_open=True)
