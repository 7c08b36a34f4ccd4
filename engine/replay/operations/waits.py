"""Waits for events: `step.wait_for_event` and `step.listen`; and requests to people.

A request waits for the one event that answers it. The row of the step says what is asked, of whom, and which answers
are valid (`options`). The type of the event is derived from the number of the step and reserved for its answer, so an
answer reaches this request or none.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from engine.declare.messages import Answer
from engine.replay.calls import phases
from engine.replay.operations.operation import Operation
from engine.replay.records import outcomes
from engine.replay.records.history import EventRecord, StepRecord
from engine.replay.state import CycleState
from engine.values.errors import EventTimeoutError, RequestTimeoutError, StepConfigError
from engine.values.identity import request_type
from engine.values.serialization import JSON, Codec, encode
from engine.values.states import StepStatus, WaitingFor

WHAT = "Argument of step.request"
MAX_MESSAGE = 10_000
MAX_ASSIGNEES = 100
MAX_ASSIGNEE = 160  # "group:" and a name of 150 characters, Django's longest


class WaitOperation(Operation):
    """A call of `step.wait_for_event` or `step.listen`."""

    waiting_for = WaitingFor.EVENT

    def __init__(
        self,
        cycle: CycleState,
        record: StepRecord,
        types: tuple[str, ...],
        timeout_us: int | None,
        decode: Callable[[str], Any],
    ) -> None:
        super().__init__(cycle, record, decode)
        self.types = types
        self.timeout_us = timeout_us

    def begin(self) -> None:
        """Consume a buffered event, or wait."""
        record = self.record
        if not record.is_recorded:
            record.status = StepStatus.WAITING
            record.event_types = self.types
            if self.timeout_us is not None:
                record.wake_us = record.started_us + self.timeout_us
        self.cycle.waits.add(self)
        self.cycle.matching.offer_to(self)
        if self.phase is phases.WAITING:
            self.cycle.wait_until(self, record.wake_us, is_new=not record.is_recorded)

    def receive(self, event: EventRecord) -> None:
        """Consume the event, which is the outcome."""
        self.cycle.writes.consumed[event.key] = self.record.seq
        self.cycle.conclude(self, output=outcomes.event_json(event))

    def fire(self) -> None:
        self.expire()

    def expire(self) -> None:
        """Time out, once it is certain that no event came before the deadline."""
        cycle, record, deadline = self.cycle, self.record, self.record.wake_us
        if deadline is None or self.phase is not phases.WAITING:
            return
        if cycle.events.as_of_us < deadline or not cycle.events.covers(frozenset(record.event_types)):
            cycle.matching.read()
            return
        # The length that the call gives, if it still gives one: a pause moves the deadline.
        length_us = deadline - record.started_us if self.timeout_us is None else self.timeout_us
        types = record.event_types[0] if len(record.event_types) == 1 else record.event_types
        error = self.timed_out(types, timedelta(microseconds=length_us))
        cycle.conclude(self, error=outcomes.error_json(error, step=record.name))

    def timed_out(self, types: str | Sequence[str], timeout: timedelta) -> EventTimeoutError:
        """Return the error that the handler gets."""
        return EventTimeoutError(self.record.name, types, timeout)

    def closed(self) -> None:
        self.cycle.waits.remove(self.record.seq)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, of whom, and the type of the answer; checked."""

    options: str  # as they are recorded
    codec: Codec

    @classmethod
    def of(cls, schema: Any, message: object, assignees: object) -> Question:
        """Raises StepConfigError for a wrong argument, InvalidValueError for a message that cannot be stored."""
        codec = _codec(schema)
        asked: dict[str, JSON] = {"message": _message(message), "assignees": [*_assignees(assignees)]}
        return cls(encode({**asked, "schema": _schema(codec)}, what="request"), codec)

    def decode(self, text: str) -> Answer[Any]:
        """Return the answer that the wait recorded, with its value as the declared type."""
        data = json.loads(text)
        given = data["payload"]
        value = self.codec.decode(json.dumps(given["value"]), "answer")
        return Answer(value, data["sent_by"], outcomes.moment(data["received_us"]), given["comment"])


class RequestOperation(WaitOperation):
    """A call of `step.request`."""

    def __init__(
        self, cycle: CycleState, record: StepRecord, question: Question, timeout_us: int | None
    ) -> None:
        super().__init__(cycle, record, (), timeout_us, question.decode)
        self.options = record.options or question.options

    def begin(self) -> None:
        """Ask, or continue to wait. The event's type is derived from the step's number, which is known now."""
        self.types = (request_type(self.cycle.claimed.generation, self.record.seq),)
        if not self.record.is_recorded:
            self.record.options = self.options
            self.record.wake_is_fixed = True  # it expires at the time that people were told, paused or not
        super().begin()

    def timed_out(self, types: str | Sequence[str], timeout: timedelta) -> EventTimeoutError:
        return RequestTimeoutError(self.record.name, types, timeout)


_schemas: weakref.WeakKeyDictionary[Codec, JSON] = weakref.WeakKeyDictionary()


def _schema(codec: Codec) -> JSON:
    try:
        if codec not in _schemas:
            _schemas[codec] = codec.schema()
        return _schemas[codec]
    except Exception as problem:
        rule = f"Its JSON Schema cannot be made: {str(problem)[:500]}"
        raise StepConfigError("schema", codec.annotation, rule, what=WHAT) from problem


def _message(message: object) -> str:
    if not isinstance(message, str) or not message.strip() or len(message) > MAX_MESSAGE:
        rule = f"Say what is asked, in 1 to {MAX_MESSAGE:,} characters."
        raise StepConfigError("message", message, rule, what=WHAT)
    return message


def _assignees(assignees: Any) -> tuple[str, ...]:
    is_list = isinstance(assignees, Sequence) and not isinstance(assignees, str)
    if not is_list or len(assignees) > MAX_ASSIGNEES:
        rule = f'Name at most {MAX_ASSIGNEES} users and groups in a list: ["ada", "group:finance"].'
        raise StepConfigError("assignees", assignees, rule, what=WHAT)
    for one in assignees:
        if not isinstance(one, str) or not one.removeprefix("group:").strip() or len(one) > MAX_ASSIGNEE:
            rule = 'Each must be a user\'s name, or "group:" and the name of a group.'
            raise StepConfigError("assignees", one, rule, what=WHAT)
    return tuple(assignees)


def _codec(schema: Any) -> Codec:
    codec = Codec.of(schema)
    if codec.problem:
        rule = f"It must be a type that pydantic validates, such as bool or a model. {codec.problem}"
        raise StepConfigError("schema", schema, rule, what=WHAT)
    return codec
