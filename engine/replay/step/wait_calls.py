"""The calls of `step` that wait: for a time, for an event, for people."""

from __future__ import annotations

import functools
import json
from collections.abc import Coroutine, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar, overload

from engine.declare.messages import Answer, Event, ReceivedEvent
from engine.replay.calls.call import INERT
from engine.replay.operations.operation import SleepOperation
from engine.replay.operations.waits import Question, RequestOperation, WaitOperation
from engine.replay.records import outcomes
from engine.replay.state import CycleState
from engine.replay.step.entrance import Entrance
from engine.values.durations import MAX_DURATION, parse_duration
from engine.values.errors import StepConfigError
from engine.values.identity import check_event_type, check_step_name
from engine.values.serialization.secret_context import opened
from engine.values.states import StepKind

T = TypeVar("T")
Awaited = Coroutine[Any, Any, Any]
Duration = timedelta | int | float | str
MICROSECOND = timedelta(microseconds=1)


class WaitCalls:
    """The operations of a WorkflowStep that wait."""

    _cycle: CycleState
    _entrance: Entrance

    def sleep(self, name: str, duration: Duration) -> Coroutine[Any, Any, None]:
        """Park for a duration: seconds, a timedelta, or text such as "10m"; at most 365 days. Never shorter. The
        end is fixed when the call is first reached.

        Raises ValueError for a wrong duration, and ParkingError inside a body.
        """
        length = parse_duration(duration)
        return self._sleep("sleep", name, length // MICROSECOND, None)

    def sleep_until(self, name: str, when: datetime) -> Coroutine[Any, Any, None]:
        """Park until a moment, an aware datetime within 365 days. A moment in the past returns at once. A pause
        does not shift it.

        Raises StepConfigError for another value, and ParkingError inside a body.
        """
        return self._sleep(
            "sleep_until", name, None, _check_moment(when, outcomes.moment(self._cycle.now_us))
        )

    def _sleep(self, operation: str, name: str, duration_us: int | None, until_us: int | None) -> Awaited:
        cycle = self._entrance.enter(operation, name)
        if cycle is None:
            return INERT
        record = cycle.identities.record_of(StepKind.SLEEP, check_step_name(name))
        return cycle.enter(SleepOperation(cycle, record, duration_us, until_us))

    @overload
    def wait_for_event(
        self, name: str, type: Event[T], *, timeout: Duration | None = "24h"
    ) -> Coroutine[Any, Any, ReceivedEvent[T]]: ...
    @overload
    def wait_for_event(
        self,
        name: str,
        type: str | Sequence[str | Event[Any]] | None = None,
        *,
        timeout: Duration | None = "24h",
    ) -> Coroutine[Any, Any, ReceivedEvent[Any]]: ...
    def wait_for_event(self, name: str, type: Any = None, *, timeout: Duration | None = "24h") -> Any:
        """Park until an event of the type arrives; return it as a ReceivedEvent. `type` is a text, a declared
        Event, or a list that means any of them; the default is the step's name.

        Events sent earlier are buffered and count, oldest first. `timeout` is at most 365 days; None waits forever,
        within the workflow's own timeout. Raises EventTimeoutError after it, and ParkingError inside a body.
        """
        limit = None if timeout is None else parse_duration(timeout, what="timeout") // MICROSECOND
        return self._wait("wait_for_event", name, type, limit, is_kept=True)

    def listen(self, name: str) -> Coroutine[Any, Any, None]:
        """Park until an event with the step's name arrives, however long it takes; its payload is dropped. Raises
        ParkingError inside a body.
        """
        return self._wait("listen", name, None, None, is_kept=False)

    def _wait(
        self, operation: str, name: str, type: Any, timeout_us: int | None, *, is_kept: bool
    ) -> Awaited:
        cycle = self._entrance.enter(operation, name)
        if cycle is None:
            return INERT
        check_step_name(name)
        types = _event_types(name if type is None else type)
        record = cycle.identities.record_of(StepKind.EVENT, name)
        declared = type if isinstance(type, Event) else None
        decode_event = functools.partial(_received, declared) if is_kept else _nothing
        return cycle.enter(WaitOperation(cycle, record, types, timeout_us, decode_event))

    @overload
    def request(
        self,
        name: str,
        schema: type[T],
        *,
        message: str,
        assignees: Sequence[str] = (),
        timeout: Duration | None = None,
    ) -> Coroutine[Any, Any, Answer[T]]: ...
    @overload
    def request(
        self,
        name: str,
        schema: Any,
        *,
        message: str,
        assignees: Sequence[str] = (),
        timeout: Duration | None = None,
    ) -> Coroutine[Any, Any, Answer[Any]]: ...
    def request(
        self,
        name: str,
        schema: Any,
        *,
        message: str,
        assignees: Sequence[str] = (),
        timeout: Duration | None = None,
    ) -> Any:
        """Ask people, and park until one of them answers; return the answer and who gave it.

        `schema` is the type of the answer: the form in the Studio is made from it, and an answer that does not fit
        its JSON Schema is refused with an error. (An answer that fits the schema but fails the type's own validators,
        which a JSON Schema cannot express, pauses the instance.) `message` is what people read; put data into it.
        `assignees` are names of users, or "group:<name>"; without any, everyone with the permission to approve may
        answer.

        Raises RequestTimeoutError when nobody has answered within `timeout` (None: wait forever, within the
        workflow's own timeout); it names a moment, which a pause does not shift. Raises StepConfigError for a wrong
        argument.
        """
        check_step_name(name)
        question = Question.of(schema, message, assignees)
        limit = None if timeout is None else parse_duration(timeout, what="timeout") // MICROSECOND
        cycle = self._entrance.enter("request", name)
        if cycle is None:
            return INERT
        record = cycle.identities.record_of(StepKind.REQUEST, name)
        return cycle.enter(RequestOperation(cycle, record, question, limit))


def _event_types(type: Any) -> tuple[str, ...]:
    if isinstance(type, Event):
        return (type.name,)
    names = (type,) if isinstance(type, str) else tuple(type)
    if not names:
        raise StepConfigError(
            "type", type, "Name at least one event type.", what="Argument of wait_for_event"
        )
    return tuple(one.name if isinstance(one, Event) else check_event_type(one) for one in names)


def _received(declared: Event[Any] | None, text: str) -> ReceivedEvent[Any]:
    data = json.loads(text)
    payload = opened(data["payload"]) if declared is None else declared.decode(data["payload"])
    return ReceivedEvent(data["type"], payload, data["sent_by"], outcomes.moment(data["received_us"]))


def _nothing(text: str) -> None:
    return None


def _check_moment(when: object, now: datetime) -> int:
    what = "Argument of step.sleep_until"
    if not isinstance(when, datetime):
        raise StepConfigError("when", when, "It must be a datetime.", what=what)
    if when.tzinfo is None:
        raise StepConfigError("when", when, "It must say its time zone: use an aware datetime.", what=what)
    if when - now > MAX_DURATION:
        raise StepConfigError(
            "when", when, f"It must come within 365 days of step.now(), {now:%Y-%m-%d %H:%M} UTC.", what=what
        )
    us = outcomes.micros(when)
    if not us >= 0 or when.year >= 9999:
        raise StepConfigError("when", when, "It must lie between the years 1970 and 9998.", what=what)
    return us
