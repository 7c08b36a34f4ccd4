"""`step`, through which a handler does everything durable."""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any, NoReturn, ParamSpec, Protocol, TypeVar, overload
from uuid import UUID

from engine.declare.context import StepLog
from engine.declare.context_types import (
    TakesContext,
    TakesContextFourth,
    TakesContextSecond,
    TakesContextThird,
)
from engine.declare.defined_step import DefinedStep
from engine.declare.messages import Answer, Event, ReceivedEvent
from engine.replay.attempts import functions
from engine.replay.attempts.bodies import DoOperation
from engine.replay.calls.call import INERT
from engine.replay.calls.unawaited import check_awaited
from engine.replay.exit.decision import Decision
from engine.replay.nesting import nested_calls
from engine.replay.operations.operation import ProgressOperation, SleepOperation
from engine.replay.operations.requests import Question, RequestOperation
from engine.replay.operations.waits import WaitOperation
from engine.replay.records import outcomes
from engine.replay.state import CycleState
from engine.replay.step.child_calls import ChildCalls
from engine.replay.step.collection_calls import Collections
from engine.replay.step.entrance import Entrance, label
from engine.values import identity
from engine.values.durations import MAX_DURATION, parse_duration
from engine.values.error_record import cut
from engine.values.errors import (
    AbortWorkflow,
    CompleteWorkflow,
    ControlFlow,
    FailWorkflow,
    InvalidNameError,
    StepConfigError,
)
from engine.values.identity import check_event_type, check_step_name, milestone_name
from engine.values.retry import StepOptions
from engine.values.serialization import Codec, encode
from engine.values.serialization.secret_context import opened
from engine.values.states import StepKind

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
P = ParamSpec("P")
Awaited = Coroutine[Any, Any, Any]
Duration = timedelta | int | float | str
MICROSECOND = timedelta(microseconds=1)


FORM = "await step.do(name, fn, *args)"
NO_FUNCTION: Any = object()  # None is what the caller may have got from a function


class StepCall(Protocol[P, T_co]):
    """What `@step.do("name")` makes of the function below it: a call of it is a call of the step."""

    @overload
    def __call__(
        self: StepCall[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def __call__(self: StepCall[P, T], *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]: ...


class StepDecorator:
    """What `@step.do("name")` is: it takes the function below it. Awaited, the function was forgotten."""

    def __init__(self, decorate: Callable[[Callable[..., Any]], Callable[..., Awaited]]) -> None:
        self._decorate = decorate

    @overload
    def __call__(self, fn: TakesContext[P, T], /) -> StepCall[P, T]: ...
    @overload
    def __call__(self, fn: TakesContextSecond[T], /) -> StepCall[..., T]: ...
    @overload
    def __call__(self, fn: TakesContextThird[T], /) -> StepCall[..., T]: ...
    @overload
    def __call__(self, fn: TakesContextFourth[T], /) -> StepCall[..., T]: ...
    @overload
    def __call__(self, fn: Callable[P, T], /) -> StepCall[P, T]: ...
    def __call__(self, fn: Callable[..., Any], /) -> Any:
        return self._decorate(fn)

    def __await__(self) -> NoReturn:
        rule = f"It is missing: {FORM}. Without it, step.do is a decorator of the function below it."
        raise StepConfigError("fn", None, rule, what="Argument of step.do")


class WorkflowStep(ChildCalls, Collections):
    """The durable operations of one instance, and facts about it.

    Every operation has a name, and with its kind and its turn among those of that name an identity, fixed at the call
    and before the first await. On a replay an operation that has an outcome returns it; the rest start when nothing
    recorded is left to replay.
    """

    def __init__(self, cycle: CycleState, decision: Decision) -> None:
        self._cycle = cycle
        self._decision = decision
        self._entrance = Entrance(cycle, decision)
        self._facts = cycle.claimed
        self._uuids = 0
        self.log = StepLog(self._say)

    # Facts

    @property
    def instance_id(self) -> str:
        return self._facts.id

    @property
    def workflow(self) -> str:
        return self._facts.workflow

    @property
    def started_at(self) -> datetime:
        return outcomes.moment(self._facts.started_us)

    def now(self) -> datetime:
        """Return the time of the last delivered outcome: the same on every replay."""
        return outcomes.moment(self._cycle.now_us)

    def uuid4(self) -> UUID:
        """Return a UUID that is the same on every replay; in a body, on every attempt."""
        if not self._cycle.loop.is_driven_here:
            return nested_calls.uuid4(self._cycle)
        self._uuids += 1
        return identity.seeded_uuid4(self._seed, self._uuids)

    @property
    def random(self) -> Random:
        """A random number generator that says the same on every replay; in a body, on every attempt."""
        return self._random if self._cycle.loop.is_driven_here else nested_calls.random(self._cycle)

    @functools.cached_property
    def _random(self) -> Random:
        return identity.seeded_random(*self._origin)

    @functools.cached_property
    def _seed(self) -> str:
        return identity.seed(*self._origin)

    @property
    def _origin(self) -> tuple[str, str, int]:
        # The steps that a restart has kept were called with the values of the generation in which they ran.
        generation = self._cycle.history.first_generation or self._facts.generation
        return self._facts.workflow, self._facts.id, generation

    def _say(self, level: str, message: str, fields: dict[str, Any]) -> None:
        if self._cycle.loop.is_driven_here:
            self._cycle.say(level, message, fields)
        else:
            nested_calls.say(self._cycle, level, message, fields)

    # Work

    @overload
    def do(
        self, name: str, fn: Callable[..., Awaitable[T]], /, *args: Any, **options: Any
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def do(
        self, name: str, fn: Callable[..., T], /, *args: Any, **options: Any
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def do(self, name: str, /, **options: Any) -> StepDecorator: ...
    def do(self, name: str, fn: Any = NO_FUNCTION, /, *args: Any, **options: Any) -> Any:
        """Run `fn(*args)` once it has succeeded, ever; return its recorded result.

        Sync functions run in a thread, async ones on the worker's loop. A parameter of `fn` named `ctx` receives the
        StepContext. Options: max_attempts, delay, backoff, max_delay, jitter, timeout, once, sensitive, atomic,
        rollback, rollback_options.

        With `atomic=True`, what a sync `fn` writes to the default database is committed together with the step's
        completion: exactly once. Its `transaction.on_commit` functions run once or, if the worker dies, not at all.
        A sync rollback of such a step is atomic, too, unless `rollback_options` say otherwise.

        Without `fn`, this is a decorator: what it returns runs the step when it is called.

        Raises StepError when the attempts are used up, StepConfigError for a wrong option, StepArgumentsError for
        arguments that `fn` does not take, InvalidNameError for a name over 256 characters or with control characters,
        LimitError past the workflow's max_steps.
        """
        if not isinstance(name, str):
            raise InvalidNameError("a step's name", name, f"It must be a string: {FORM}.")
        if fn is NO_FUNCTION:
            return StepDecorator(self._decorator(name, options))
        if isinstance(fn, DefinedStep):  # with what it declares, under the name that is given here
            return self.run(fn.using(name=name, **options), *args)
        if options:
            functions.check_options(label(name), fn, options)
        return self._do(name, fn, args, {}, self._entrance.options(name, options))

    @overload
    def run(
        self, defined: DefinedStep[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def run(
        self, defined: DefinedStep[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]: ...
    def run(self, defined: DefinedStep[Any, Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a step made by `@define_step`, once; return its recorded result.

        Arguments that do not fit raise InvalidParamsError here, and nothing is recorded; a return value that does
        not fit fails the step without a retry. Raises what `do` raises, too.
        """
        if not isinstance(defined, DefinedStep):
            rule = "It must be made by @define_step. For a plain function: await step.do(name, fn, *args)."
            raise StepConfigError("defined", defined, rule, what="Argument of step.run")
        check_awaited("it was passed to another step", *args, *kwargs.values())
        made = defined.options_over(self._entrance.defaults)
        what = f'arguments of step "{defined.name}"'
        args, kwargs = functions.arguments_of(defined, args, kwargs, what=what, is_sensitive=made.sensitive)
        return self._do(defined.name, defined.fn, args, kwargs, made, defined.codec)

    def _decorator(self, name: str, options: dict[str, Any]) -> Any:
        check_step_name(name)
        made = self._entrance.options(name, options)

        def decorate(fn: Callable[..., Any]) -> Callable[..., Awaited]:
            @functools.wraps(fn)
            def call(*args: Any, **kwargs: Any) -> Awaited:
                if isinstance(fn, DefinedStep):
                    return self.run(fn.using(name=name, **options), *args, **kwargs)
                return self._do(name, fn, args, kwargs, made)

            return call

        return decorate

    def _do(
        self,
        name: str,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        options: StepOptions,
        codec: Codec | None = None,
    ) -> Awaited:
        functions.check_is_function(fn, "step.do", FORM)
        check_awaited("it was passed to another step", *args, *kwargs.values())
        if not self._cycle.loop.is_driven_here:
            return nested_calls.do(self._cycle, name, fn, args, kwargs, options, codec)
        cycle = self._entrance.entered()
        if cycle is None:
            return INERT
        check_step_name(name)
        cycle.step_count.add()
        record = cycle.identities.record_of(StepKind.DO, name, once=options.once)
        options = functions.options_in_force(record, options)
        if options.atomic:
            functions.check_is_sync(name, fn)
        if not record.is_final:  # else it is not called any more
            functions.check_arguments(name, fn, args, kwargs)
        codec = codec or functions.codec_of(fn)
        return cycle.enter(DoOperation(cycle, record, fn, args, kwargs, options, codec))

    # Waiting

    def sleep(self, name: str, duration: Duration) -> Coroutine[Any, Any, None]:
        """Park for a duration (seconds, timedelta, or text such as "10m"). Never shorter."""
        length = parse_duration(duration)
        return self._sleep("sleep", name, length // MICROSECOND, None)

    def sleep_until(self, name: str, when: datetime) -> Coroutine[Any, Any, None]:
        """Park until a moment (an aware datetime). A moment in the past returns at once."""
        return self._sleep("sleep_until", name, None, _check_moment(when, self.now()))

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
        self, name: str, type: str | Sequence[str] | None = None, *, timeout: Duration | None = "24h"
    ) -> Coroutine[Any, Any, ReceivedEvent[Any]]: ...
    def wait_for_event(self, name: str, type: Any = None, *, timeout: Duration | None = "24h") -> Any:
        """Park until an event of the type (default: the step's name; a list means any of them) comes.

        Events sent before are buffered and count, oldest first. Raises EventTimeoutError after `timeout`
        (None: wait for ever, within the workflow's own timeout).
        """
        limit = None if timeout is None else parse_duration(timeout, what="timeout") // MICROSECOND
        return self._wait("wait_for_event", name, type, limit, is_kept=True)

    def listen(self, name: str) -> Coroutine[Any, Any, None]:
        """Park until an event named like the step comes, for as long as it takes; its payload is dropped."""
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
        its JSON Schema is refused to whoever gives it. (One that fits, but not the type, whose own validators a
        JSON Schema cannot hold, pauses the instance.) `message` is what people read; put data into it. `assignees`
        are names of users, or "group:<name>"; without any, whoever may operate instances may answer.

        Raises RequestTimeoutError when nobody has answered within `timeout` (None: wait for ever, within the
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

    def progress(self, message: str, percent: float | None = None) -> Coroutine[Any, Any, None]:
        """Record a milestone: it shows in the Studio and does no work. Raises StepConfigError for a wrong percent.

        The message is its name: what says something else is another milestone.
        """
        _check_percent(percent)
        said = str(message)
        output = encode({"message": said, "percent": percent}, what="progress")
        cycle = self._entrance.enter("progress", cut(said, 200))
        if cycle is None:
            return INERT
        record = cycle.identities.record_of(StepKind.PROGRESS, milestone_name(said))
        return cycle.enter(ProgressOperation(cycle, record, output))

    # Ending

    async def fail(self, message: str) -> NoReturn:
        """End the instance as errored."""
        raise self._decide("fail", FailWorkflow(message))

    async def abort(self, reason: str = "") -> NoReturn:
        """End the instance as terminated: stopped on purpose, not failed."""
        raise self._decide("abort", AbortWorkflow(reason))

    async def complete(self, output: Any = None) -> NoReturn:
        """End the instance as complete with this output, from anywhere in the handler."""
        raise self._decide("complete", CompleteWorkflow(output))

    def _decide(self, operation: str, flow: ControlFlow) -> BaseException:
        if not self._cycle.loop.is_driven_here:
            return nested_calls.refusal(operation)
        return self._decision.decide(flow)


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


def _check_percent(percent: object) -> None:
    is_number = isinstance(percent, int | float) and not isinstance(percent, bool)
    if percent is not None and not (is_number and 0 <= percent <= 100):  # type: ignore[operator]
        rule = "It must be a number from 0 to 100, or None."
        raise StepConfigError("percent", percent, rule, what="Argument of step.progress")


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
