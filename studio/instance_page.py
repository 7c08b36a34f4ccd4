"""All that the page of one instance shows, read with a fixed number of queries, however many steps it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from engine.models import Event, Instance, Log, Step
from engine.status import record
from engine.status.generations import Generations
from engine.status.prefixes import with_prefixes
from engine.status.record import Limits, Record
from engine.status.sentences.sentence import Sentence
from engine.status.snapshot import snapshot
from engine.status.steps import logs_of, steps_of
from engine.values.identity import TOP
from engine.values.states import Action, allows
from studio import changed_code, declared, nested_steps, payloads
from studio.display_status import display_status
from studio.failures import Failure, Origin, failure, origin_of
from studio.instance_timeline import timeline_of
from studio.nested_steps import NestedSteps
from studio.rows import Row, rows_of
from studio.steps import INLINE, Line, lines_of
from studio.timeline import Timeline

STEPS_SHOWN = 200
LOGS_SHOWN = 200
UNREACHED_SHOWN = 50
CHILDREN_SHOWN = 50
LIMITS = Limits(events=100, children=CHILDREN_SHOWN, actions=50)


@dataclass(frozen=True, slots=True)
class InstancePage:
    """One instance, ready to be drawn."""

    record: Record
    status: str
    lines: tuple[Line, ...]
    steps_shown: int
    steps_total: int
    earlier: int | None
    timeline: Timeline
    children: tuple[Row, ...]
    events: tuple[tuple[Event, payloads.Payload], ...]
    logs: tuple[Log, ...]
    params: payloads.Payload
    output: payloads.Payload | None
    failure: Failure | None
    code: changed_code.Notice | None
    unreached: tuple[Step, ...]
    origin: Origin | None

    @property
    def instance(self) -> Instance:
        return self.record.instance

    @property
    def generations(self) -> Generations:
        return self.record.generations

    @property
    def why(self) -> Sentence:
        return self.record.status_line

    @property
    def began_at(self) -> datetime:
        return self.record.began_at

    @property
    def took(self) -> timedelta | None:
        return self.record.took

    @property
    def parent(self) -> Instance | None:
        return self.record.parent

    @property
    def children_total(self) -> int:
        return self.record.children_total

    @property
    def wanted_events(self) -> tuple[str, ...]:
        """The types that its open steps wait for."""
        waits = [step for step in self.record.facts.steps if step.kind == "event" and step.is_waiting]
        return tuple(name for step in waits for name in step.event_types or (step.name,))

    @property
    def has_requests(self) -> bool:
        return any(step.kind == "request" for step in self.record.facts.steps)

    @property
    def declared_events(self) -> list[declared.Declared]:
        return declared.declared(self.wanted_events)

    @property
    def place(self) -> str:
        """Begin the queries of links that stay in an earlier generation."""
        return place_of(self.generations)

    @property
    def is_past(self) -> bool:
        """Whether this is an earlier generation, which is only shown."""
        return self.record.is_past

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


def place_of(those: Generations) -> str:
    """Begin the queries of links that stay in an earlier generation."""
    return f"generation={those.shown}&" if those.is_past else ""


def of(workflow: str, id: str, upto: int | None = None, generation: int | None = None) -> InstancePage:
    """Read it by workflow and id; raises Instance.DoesNotExist. Of many steps it has the newest, or those `upto`.

    With the number of an earlier generation it is shown as that one left it; raises GenerationNotFoundError.
    """
    return _read(_instances().get(workflow=workflow, id=id), upto, generation)


def of_key(key: int, upto: int | None = None) -> InstancePage:
    """Read it by key; raises Instance.DoesNotExist."""
    return _read(_instances().get(key=key), upto)


def _instances() -> Any:
    return with_prefixes(Instance.objects, "params", "output", length=payloads.FULL_UP_TO)


def _read(newest: Instance, upto: int | None, generation: int | None = None) -> InstancePage:
    shown = snapshot(newest, generation, output_up_to=payloads.FULL_UP_TO)
    top = _top_steps(shown.instance, upto)
    inner, nested = nested_steps.within(shown.instance, top, step_rows(shown.instance))
    found = record.read(shown, [*top, *inner], limits=LIMITS, with_payloads=True)
    return _page(found, top, nested, upto)


def step_rows(instance: Instance) -> Any:
    """Return the query for its steps, with the prefixes of their outputs."""
    return with_prefixes(steps_of(instance), "output", length=INLINE)


def _top_steps(instance: Instance, upto: int | None) -> list[Any]:
    """Read the newest steps of the handler, or the newest of those up to a number, in their order."""
    rows = step_rows(instance).filter(parent=TOP)
    if upto is not None:
        rows = rows.filter(seq__lte=min(upto, 2**31 - 1))
    return list(rows.order_by("-seq")[:STEPS_SHOWN])[::-1]


def _page(
    found: Record, top: Sequence[Any], nested: Mapping[int, NestedSteps], upto: int | None
) -> InstancePage:
    instance, place = found.instance, place_of(found.generations)
    logs = tuple(logs_of(instance).order_by("-key")[:LOGS_SHOWN])[::-1]
    events, paused_at = found.events, instance.paused_at
    lines = tuple(
        lines_of(found.steps, found.attempts, events, logs, nested, paused_at=paused_at, place=place)
    )
    is_all = upto is None and len(top) < STEPS_SHOWN
    error = instance.last_problem if isinstance(instance.last_problem, dict) else None
    code = changed_code.notice_of(instance, error)
    return InstancePage(
        record=found,
        status=_status(found),
        lines=lines,
        steps_shown=len(top),
        steps_total=len(top) if is_all else steps_of(instance).filter(parent=TOP).count(),
        earlier=top[0].seq - 1 if top and top[0].seq > 1 else None,
        timeline=timeline_of(found, lines, is_newest=upto is None),
        children=tuple(rows_of(found.children)) if found.children else (),
        events=tuple((event, _event_payload(event)) for event in events),
        logs=logs,
        params=_params(instance),
        output=_output(instance, is_past=found.is_past),
        failure=None if code and code.is_paused else failure(error),
        code=code,
        unreached=_unreached(instance),
        origin=origin_of(found, {line.step.seq for line in lines}, place),
    )


def _status(found: Record) -> str:
    asks = any(step.is_asking for step in found.facts.steps)
    return display_status(found.instance.status, found.instance.waiting_for, asks=asks)


def _params(instance: Any) -> payloads.Payload:
    return payloads.payload("params", instance.params_text or "null", instance.params_size)


def _output(instance: Any, *, is_past: bool) -> payloads.Payload | None:
    if instance.status != "complete":
        return None
    what = f"output-g{instance.generation}" if is_past else "output"
    return payloads.payload(what, instance.output_text or "null", instance.output_size)


def _unreached(instance: Instance) -> tuple[Step, ...]:
    """Read the first of the steps that the code which ended the instance no longer called."""
    if not instance.unreached:
        return ()
    rows = steps_of(instance).filter(seq__in=instance.unreached[:UNREACHED_SHOWN])
    return tuple(rows.only("seq", "name", "count").order_by("seq"))


def _event_payload(event: Event) -> payloads.Payload:
    text = payloads.stored_text(event.payload)
    return payloads.payload(f"event-{event.key}", text, full_up_to=INLINE)
