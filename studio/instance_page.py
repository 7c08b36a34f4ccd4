"""All that the page of one instance shows, read with a fixed number of queries, however many steps it has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, TextField
from django.db.models.functions import Cast, Left, Length

from engine.identity import TOP
from engine.models import Audit, Event, Instance, Log, Step
from engine.states import Action, allows
from engine.status import generations as standing
from engine.status import status_line
from engine.status.children import children_of
from engine.status.facts import OpenStep
from engine.status.generations import Generations
from studio import changed_code, declared, generations, nested_steps, payloads, timeline
from studio.display_status import shown
from studio.recorded import STEPS_SHOWN, attempts_of, of_generation, step_rows, top_steps
from studio.relatives import CHILDREN_SHOWN, parent_of
from studio.rows import Row, rows_of
from studio.steps import INLINE, Failure, Line, Origin, failure, lines_of, stretches_of

LOGS_SHOWN = 200
EVENTS_SHOWN = 100
TRAIL_SHOWN = 50
UNREACHED_SHOWN = 50


@dataclass(frozen=True, slots=True)
class InstancePage:
    """One instance, ready to be drawn."""

    instance: Instance
    now: datetime
    began_at: datetime
    status: str
    why: status_line.Sentence
    lines: tuple[Line, ...]
    parent: Instance | None
    children: tuple[Row, ...]
    children_total: int
    steps_shown: int
    steps_total: int
    earlier: int | None
    timeline: timeline.Timeline
    events: tuple[tuple[Event, payloads.Payload], ...]
    logs: tuple[Log, ...]
    trail: tuple[Audit, ...]
    params: payloads.Payload
    output: payloads.Payload | None
    failure: Failure | None
    code: changed_code.Notice | None
    unreached: tuple[Step, ...]
    origin: Origin | None
    wanted_events: tuple[str, ...]
    has_requests: bool
    generations: Generations

    @property
    def declared_events(self) -> list[declared.Declared]:
        return declared.declared(self.wanted_events)

    @property
    def place(self) -> str:
        """Begin the queries of links that stay in an earlier generation."""
        return generations.place_of(self.generations)

    @property
    def is_past(self) -> bool:
        """Whether this is an earlier generation, which is only shown."""
        return self.generations.is_past

    @property
    def has_undone(self) -> bool:
        return any(line.undone for line in self.lines)

    @property
    def has_kept(self) -> bool:
        return any(line.step.kept_from for line in self.lines)

    @property
    def is_pausing(self) -> bool:
        return self.instance.status == "waiting_for_pause"

    @property
    def took(self) -> timedelta | None:
        finished = self.instance.finished_at
        return finished - self.began_at if finished else None

    @property
    def more_unreached(self) -> int:
        return len(self.instance.unreached) - len(self.unreached)

    def may(self, action: Action) -> bool:
        return not self.is_past and allows(action, self.instance.status)

    @property
    def may_pause(self) -> bool:
        return self.may(Action.PAUSE)

    @property
    def may_resume(self) -> bool:
        """Offer it where it leads anywhere: under code that is not accepted it would be paused again."""
        return self.may(Action.RESUME) and not (
            self.code and self.code.is_to_be_accepted and self.code.is_paused
        )

    @property
    def may_terminate(self) -> bool:
        return self.may(Action.TERMINATE)

    @property
    def may_delete(self) -> bool:
        return self.may(Action.DELETE)

    @property
    def may_retry_rollback(self) -> bool:
        return self.may(Action.RETRY_ROLLBACK) and self.instance.rollback == "failed"

    @property
    def may_send(self) -> bool:
        return self.may(Action.SEND_EVENT)

    @property
    def unfinished(self) -> bool:
        return not self.instance.is_finished


def of(workflow: str, id: str, upto: int | None = None, generation: int | None = None) -> InstancePage:
    """Read it by workflow and id; raises Instance.DoesNotExist. Of many steps it has the newest, or those `upto`.

    With the number of an earlier generation it is shown as that one left it; raises Generation.DoesNotExist.
    """
    return _read(_instances().get(workflow=workflow, id=id), upto, generation)


def of_key(key: int, upto: int | None = None) -> InstancePage:
    """Read it by key; raises Instance.DoesNotExist."""
    return _read(_instances().get(key=key), upto)


def _instances() -> Any:
    beginning = payloads.FULL_UP_TO + 1
    return Instance.objects.defer("params", "output").annotate(
        params_text=Left(Cast("params", TextField()), beginning),
        params_size=Length(Cast("params", TextField())),
        output_text=Left(Cast("output", TextField()), beginning),
        output_size=Length(Cast("output", TextField())),
    )


def _read(instance: Any, upto: int | None, generation: int | None = None) -> InstancePage:
    those = standing.generations_of(instance, generation)
    if those.is_past:
        instance = generations.as_of(instance, those.shown)
    top = top_steps(instance, upto)
    is_all = upto is None and len(top) < STEPS_SHOWN
    inner, inside = nested_steps.within(instance, top, step_rows(instance))
    events = list(Event.objects.filter(instance_id=instance.key).order_by("-key")[:EVENTS_SHOWN])
    logs = _logs(instance)
    steps = [*top, *inner]
    attempts = attempts_of(instance, steps)
    lines = tuple(
        lines_of(
            steps,
            attempts,
            events,
            logs,
            inside,
            paused_at=instance.paused_at,
            place=generations.place_of(those),
        )
    )
    facts = standing.situation(instance, those)
    began_at = facts.began_at or instance.created_at
    born = children_of(instance)
    children = list(born.order_by("-key")[: CHILDREN_SHOWN + 1])
    error = instance.error if isinstance(instance.error, dict) else None
    code = changed_code.notice_of(instance, error)
    return InstancePage(
        instance=instance,
        now=facts.now,
        began_at=began_at,
        status=shown(instance.status, instance.waiting_for, asks=any(step.is_asking for step in facts.steps)),
        why=standing.explain(facts, those),
        parent=parent_of(instance),
        children=tuple(rows_of(children[:CHILDREN_SHOWN])) if children else (),
        children_total=len(children) if len(children) <= CHILDREN_SHOWN else born.count(),
        lines=lines,
        steps_shown=len(top),
        steps_total=len(top) if is_all else of_generation(Step, instance).filter(parent=TOP).count(),
        earlier=top[0].seq - 1 if top and top[0].seq > 1 else None,
        timeline=_timeline(
            instance, lines, began_at if those.shown > 1 else None, facts.now, is_newest=upto is None
        ),
        events=tuple((event, _event_payload(event)) for event in events),
        logs=logs,
        trail=tuple(Audit.objects.filter(instance_key=instance.key).order_by("-key")[:TRAIL_SHOWN]),
        params=payloads.payload("params", instance.params_text or "null", instance.params_size),
        output=_output(instance, is_past=those.is_past),
        failure=None if code and code.is_paused else failure(error),
        code=code,
        unreached=_unreached(instance),
        origin=_origin(instance, error, lines, generations.place_of(those)),
        wanted_events=_wanted_events(facts.steps),
        has_requests=any(step.kind == "request" for step in facts.steps),
        generations=those,
    )


def _logs(instance: Instance) -> tuple[Log, ...]:
    return tuple(of_generation(Log, instance).order_by("-key")[:LOGS_SHOWN])[::-1]


def _output(instance: Any, *, is_past: bool) -> payloads.Payload | None:
    if instance.status != "complete":
        return None
    what = f"output-g{instance.generation}" if is_past else "output"
    return payloads.payload(what, instance.output_text or "null", instance.output_size)


def _origin(
    instance: Instance, error: dict[str, Any] | None, lines: Sequence[Line], place: str
) -> Origin | None:
    """Find the step that the instance failed at: its error tells the line that raised, the instance's the handler's.

    An error names its step without the number of its call, so that of several the one with the same error counts.
    """
    if instance.status != "errored" or not error or not error.get("step"):
        return None
    rows = of_generation(Step, instance).filter(_named(error["step"]), status="errored").defer("output")
    for step in rows.order_by("-seq")[:STEPS_SHOWN]:
        found = failure(step.error)
        if found and (found.type, found.message) == (error.get("type"), error.get("message")):
            is_shown = any(line.step.seq == step.seq for line in lines)
            name = str(step) if step.name == error["step"] else str(error["step"])
            return Origin(step, name, found, is_shown, place)
    return None


def _named(said: str) -> Q:
    """Find a step by what an error calls it; an item of a map is called by its index."""
    item = re.fullmatch(r"(.+)\[([0-9]{1,5})\]", said, re.DOTALL)
    return Q(name=said) | (Q(name=item[1], count=int(item[2]) + 1, parent__gt=TOP) if item else Q())


def _unreached(instance: Instance) -> tuple[Step, ...]:
    """Read the first of the steps that the code which ended the instance no longer called."""
    if not instance.unreached:
        return ()
    rows = of_generation(Step, instance).filter(seq__in=instance.unreached[:UNREACHED_SHOWN])
    return tuple(rows.only("seq", "name", "count").order_by("seq"))


def _event_payload(event: Event) -> payloads.Payload:
    text = payloads.stored_text(event.payload)
    return payloads.payload(f"event-{event.key}", text, full_up_to=INLINE)


def _wanted_events(steps: Sequence[OpenStep]) -> tuple[str, ...]:
    waits = [step for step in steps if step.kind == "event" and step.is_waiting]
    return tuple(name for step in waits for name in step.event_types or (step.name,))


def _timeline(
    instance: Instance, lines: Sequence[Line], again_at: datetime | None, now: datetime, *, is_newest: bool
) -> timeline.Timeline:
    end = instance.finished_at or now
    start = again_at or instance.created_at
    ran = [line.step for line in lines if line.step.kept_from is None]
    if lines and lines[0].step.seq > 1 and ran:  # a part of many steps: from the first of them
        start = ran[0].started_at
    if lines and not is_newest:
        end = max((step.finished_at or now for step in ran), default=start)
    tracks = [
        timeline.Track(
            line.step.seq, line.label, line.depth, line.status, tuple(stretches_of(line, start, end))
        )
        for line in lines
    ]
    is_open = is_newest and not instance.is_finished
    return timeline.build(tracks, start=start, end=end, is_open=is_open)
