"""What the instance page shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils.safestring import SafeString

from engine.declare.registry import workflows as registry
from engine.models import Instance, Step
from engine.status.facts import OpenStep
from engine.status.generations import Generations
from engine.status.record import Record
from engine.status.sentences.sentence import LONGEST_ERROR, Sentence
from engine.values.errors import CodeChangedError
from engine.values.states import Action, allows
from studio.display import payloads
from studio.instance import event_form
from studio.instance.lane import lane
from studio.instance.steps.children import shown_id
from studio.instance.steps.failures import Failure, Origin
from studio.instance.steps.line import Line
from studio.instance.steps.part import Part
from studio.instance.timeline import Timeline
from studio.instance.timeline_tracks import START
from studio.instance.window import Window
from studio.instances.queries import Row


@dataclass(frozen=True, slots=True)
class InstancePage:
    """An instance, ready to render."""

    record: Record
    status: str
    lines: tuple[Line, ...]
    window: Window
    part: Part
    timeline: Timeline
    children: tuple[Row, ...]
    children_params: Mapping[tuple[str, str], str]
    params: payloads.Payload
    output: payloads.Payload | None
    failure: Failure | None
    code: ChangedCode | None
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
        """Why it is where it is; what a step waits for has the name that it has in the row of the step."""
        names = {line.step.seq: line.child_id or line.by for line in self.lines if line.relative}
        facts = self.record.facts
        # Whoever must not see other workflows reads no relative at all.
        steps = [
            replace(one, relative=names.get(one.seq, one.relative)) if one.relative else one
            for one in facts.steps
        ]
        return replace(self.record, facts=replace(facts, steps=steps)).status_line

    @property
    def start_lane(self) -> SafeString:
        return lane(self.timeline.lines.get(START))

    @property
    def params_preview(self) -> str:
        return "" if self.params.is_masked else payloads.preview(self.params.text)

    @property
    def output_preview(self) -> str:
        return "" if self.output is None else payloads.preview(self.output.text)

    @property
    def other_parts(self) -> list[tuple[str, str]]:
        """The links to other parts of the steps that somebody looks for: a word and its address."""
        ends = ("first", self.part.first_upto), ("earlier", self.part.earlier), ("later", self.part.later)
        found = [(word, self.window.at(upto)) for word, upto in ends if upto]
        return [*found, ("newest", self.window.newest)] if found else []

    @property
    def has_result(self) -> bool:
        return not self.unfinished or self.failure is not None

    @property
    def buffered(self) -> int:
        """How many of its newest events nothing has received yet."""
        return sum(event.state == "buffered" for event in self.record.events)

    @property
    def first_choice(self) -> str:
        """The row that is open unless the address names one: what failed or is retried, else what runs or waits."""
        if self.origin is not None and self.origin.is_shown:
            return str(self.origin.step.seq)
        troubled = self._first_of("paused", "retrying")
        if troubled or self.unfinished:
            return troubled or self._first_of("running", "approval", "waiting", "sleeping")
        return "result" if self.is_errored and self.failure and not self.origin else ""

    def _first_of(self, *statuses: str) -> str:
        steps = (line.step for line in self.lines if line.status in statuses and self.unfinished)
        return next((str(step.seq) for step in steps), "")

    @property
    def has_said_error(self) -> bool:
        """Whether the sentence above has all of the error but its traceback."""
        if self.failure is None or self.is_past or self.instance.status != "errored":
            return False
        text = f"{self.failure.type}: {self.failure.message}"
        return bool(self.failure.traceback) and "\n" not in text and len(text) <= LONGEST_ERROR

    @property
    def began_at(self) -> datetime:
        return self.record.began_at

    @property
    def parent(self) -> Instance | None:
        return self.record.parent

    @property
    def children_total(self) -> int:
        return self.record.children_total

    @property
    def named_children(self) -> list[tuple[Row, str, str]]:
        """The shown children, each with its id, if that says something, and the beginning of its params."""
        names = [(row, (row.instance.workflow, row.instance.id)) for row in self.children]
        said = [(row, name[1], self.children_params.get(name, "")) for row, name in names]
        return [(row, shown_id(of, params), params) for row, of, params in said]

    @property
    def children_counts(self) -> list[tuple[str, int]]:
        """The number of the shown children in each status, failed ones first."""
        counts = Counter(row.status for row in self.children)
        return sorted(counts.items(), key=lambda one: (one[0] != "errored", one[0]))

    @property
    def wanted_events(self) -> tuple[str, ...]:
        """The event types that its open steps wait for."""
        waits = [step for step in self.record.facts.steps if step.kind == "event" and step.is_waiting]
        return tuple(name for step in waits for name in step.event_types or (step.name,))

    @property
    def primary(self) -> str:
        """The action that most likely lets it continue, if there is one: the only one that stands out."""
        if self.code and self.code.is_to_be_accepted and self.code.is_paused:
            return "accept-code"
        may = {
            "resume": self.may_resume,
            "retry-rollback": self.may_retry_rollback,
            "retry-step": self.may_retry_step,
            "decide": self.may_decide,
            "answer": self.has_requests and not self.is_past,
            "retry-now": self.may_retry_now,
            "wake-now": self.may_wake_now,
            "send-event": bool(self.wanted_events) and self.may_send,
        }
        return next((name for name, may_be_done in may.items() if may_be_done), "")

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
    def compared_with(self) -> int | None:
        """The generation with which this one is compared first: the one before, or after the first."""
        those = self.generations
        before = those.shown - 1 or those.shown + 1
        return before if before <= those.newest else None

    @property
    def is_past(self) -> bool:
        """Whether this is an earlier generation, which is read-only."""
        return self.record.is_past

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
        """Whether resuming helps: with code that is not accepted, the instance would be paused again. It is refused
        while somebody has to decide on a step."""
        if self.exhausted and not self.is_pausing:
            return False
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
    def may_retry_step(self) -> bool:
        """Whether a step has ended it, and no rollback has run since."""
        if self.instance.status != "errored" or not self.may(Action.RETRY_STEP) or self.instance.rollback:
            return False
        error = self.instance.error
        has_step = isinstance(error, dict) and error.get("step") is not None
        return has_step or any(line.step.status == "errored" for line in self.lines)

    @property
    def exhausted(self) -> list[OpenStep]:
        """The steps whose attempts are used up and on which somebody has to decide."""
        return [step for step in self.record.facts.steps if step.is_exhausted]

    @property
    def may_decide(self) -> bool:
        return bool(self.exhausted) and self.may(Action.FAIL_STEP)

    @property
    def may_retry_now(self) -> bool:
        """Whether a step, or a rollback, waits for its next attempt."""
        rollback = self.record.facts.rollback
        undoing = rollback.step if rollback is not None and rollback.state == "running" else None
        return self.may(Action.RETRY_NOW) and (self._waits("do") or self._is_ahead(undoing))

    @property
    def may_wake_now(self) -> bool:
        """Whether a step sleeps."""
        return self.may(Action.WAKE_NOW) and self._waits("sleep")

    def _waits(self, kind: str) -> bool:
        return any(step.kind == kind and self._is_ahead(step) for step in self.record.facts.steps)

    def _is_ahead(self, step: OpenStep | None) -> bool:
        """Whether a step waits for a time that has not come."""
        if step is None or not step.is_waiting or step.wake_at is None:
            return False
        return step.wake_at > self.record.facts.now

    @property
    def may_send(self) -> bool:
        return self.may(Action.SEND_EVENT)

    @property
    def is_errored(self) -> bool:
        return self.instance.status == "errored"

    @property
    def unfinished(self) -> bool:
        return not self.instance.is_finished


def place_of(those: Generations) -> str:
    """The start of the query strings of links, which keeps the shown earlier generation."""
    return f"generation={those.shown}&" if those.is_past else ""


@dataclass(frozen=True, slots=True)
class ChangedCode:
    """Fingerprints of the code that an open instance last ran under, and of the current code.

    `current` is empty if the workflow no longer exists in the code.
    """

    recorded: str
    current: str
    is_paused: bool
    pauses: bool  # the workflow's setting

    @property
    def is_back(self) -> bool:
        return self.recorded == self.current

    @property
    def is_to_be_accepted(self) -> bool:
        return bool(self.current) and not self.is_back and (self.is_paused or self.pauses)


def changed_code_of(instance: Instance, error: Mapping[str, object] | None) -> ChangedCode | None:
    """Return the notice, if there is one to show."""
    workflow = registry.get(instance.workflow)
    current = "" if workflow is None else workflow.fingerprint
    is_paused = instance.status == "paused" and _is_of_code(error)
    if instance.is_finished or not instance.code:
        return None
    if not is_paused and current in ("", instance.code):
        return None
    pauses = workflow is not None and workflow.on_code_change == "pause"
    return ChangedCode(instance.code, current, is_paused, pauses)


def _is_of_code(error: Mapping[str, object] | None) -> bool:
    """Return whether a code change caused the pause."""
    return bool(error) and error.get("type") == CodeChangedError.__name__  # type: ignore[union-attr]
