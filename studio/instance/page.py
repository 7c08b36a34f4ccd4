"""What the instance page shows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.models import Event, Instance, Log, Step
from engine.status.generations import Generations
from engine.status.record import Record
from engine.status.sentences.sentence import Sentence
from engine.values.states import Action, allows
from studio.display import payloads
from studio.instance import changed_code, event_form
from studio.instance.steps.failures import Failure, Origin
from studio.instance.steps.line import Line
from studio.instance.timeline import Timeline
from studio.instances.rows import Row


@dataclass(frozen=True, slots=True)
class InstancePage:
    """An instance, ready to render."""

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
        """The event types that its open steps wait for."""
        waits = [step for step in self.record.facts.steps if step.kind == "event" and step.is_waiting]
        return tuple(name for step in waits for name in step.event_types or (step.name,))

    @property
    def has_requests(self) -> bool:
        return any(step.kind == "request" for step in self.record.facts.steps)

    @property
    def declared_events(self) -> list[event_form.Declared]:
        return event_form.declared(self.wanted_events)

    @property
    def place(self) -> str:
        """The start of the query strings of links, which keeps the shown earlier generation."""
        return place_of(self.generations)

    @property
    def is_past(self) -> bool:
        """Whether this is an earlier generation, which is read-only."""
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
        """Whether resuming helps: with code that is not accepted, the instance would be paused again."""
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
    """The start of the query strings of links, which keeps the shown earlier generation."""
    return f"generation={those.shown}&" if those.is_past else ""
