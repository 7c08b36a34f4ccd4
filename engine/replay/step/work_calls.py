"""The calls of `step` that run a function until it has succeeded: `do` and `run`."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NoReturn, ParamSpec, Protocol, TypeVar, TypeVarTuple, Unpack, overload

from engine.declare.defined_step import DefinedStep
from engine.declare.step_types import (
    ContextFirst,
    ContextFourth,
    ContextOnly,
    ContextSecond,
    ContextThird,
    StepOptionsDict,
    TakesContext,
)
from engine.replay.attempts import functions
from engine.replay.attempts.bodies import DoOperation
from engine.replay.calls.call import INERT
from engine.replay.calls.unawaited import check_awaited
from engine.replay.nesting import nested_calls
from engine.replay.state import CycleState
from engine.replay.step.entrance import Entrance, label
from engine.values.errors import InvalidNameError, StepConfigError
from engine.values.identity import check_step_name
from engine.values.retry import StepOptions
from engine.values.serialization import Codec
from engine.values.states import StepKind

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
P = ParamSpec("P")
Ts = TypeVarTuple("Ts")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
Awaited = Coroutine[Any, Any, Any]
Outcome = Coroutine[Any, Any, T]

FORM = "await step.do(name, fn, *args)"
NO_FUNCTION: Any = object()  # None may be what the caller got from a function


class StepCall(Protocol[P, T_co]):
    """What `@step.do("name")` makes of the function below it: a call of it is a call of the step."""

    @overload
    def __call__(
        self: StepCall[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def __call__(self: StepCall[P, T], *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]: ...


class StepDecorator:
    """What `step.do("name")` returns: it takes the function below it. If it is awaited, the function is missing."""

    def __init__(self, decorate: Callable[[Callable[..., Any]], Callable[..., Awaited]]) -> None:
        self._decorate = decorate

    @overload
    def __call__(  # type: ignore[overload-overlap]  # of the same meaning
        self, fn: TakesContext[P, T], /
    ) -> StepCall[P, T]: ...
    @overload
    def __call__(self, fn: ContextOnly[T], /) -> StepCall[[], T]: ...
    @overload
    def __call__(self, fn: ContextSecond[Any, T], /) -> StepCall[..., T]: ...
    @overload
    def __call__(self, fn: ContextThird[Any, Any, T], /) -> StepCall[..., T]: ...
    @overload
    def __call__(self, fn: ContextFourth[Any, Any, Any, T], /) -> StepCall[..., T]: ...
    @overload
    def __call__(self, fn: Callable[P, T], /) -> StepCall[P, T]: ...
    def __call__(self, fn: Callable[..., Any], /) -> Any:
        return self._decorate(fn)

    def __await__(self) -> NoReturn:
        rule = f"It is missing: {FORM}. Without it, step.do is a decorator of the function below it."
        raise StepConfigError("fn", None, rule, what="Argument of step.do")


class WorkCalls:
    """The operations of a WorkflowStep that do work."""

    _cycle: CycleState
    _entrance: Entrance

    # mypy needs a signature for functions that are awaited, and one for the others.
    @overload
    def do(
        self,
        name: str,
        fn: Callable[[*Ts], Awaitable[T]],
        /,
        *args: *Ts,
        **options: Unpack[StepOptionsDict],
    ) -> Outcome[T]: ...
    @overload
    def do(
        self,
        name: str,
        fn: Callable[[*Ts], T],
        /,
        *args: *Ts,
        **options: Unpack[StepOptionsDict],
    ) -> Outcome[T]: ...
    @overload
    def do(
        self,
        name: str,
        fn: ContextFirst[*Ts, Awaitable[T]],
        /,
        *args: *Ts,
        **options: Unpack[StepOptionsDict],
    ) -> Outcome[T]: ...
    @overload
    def do(
        self,
        name: str,
        fn: ContextFirst[*Ts, T],
        /,
        *args: *Ts,
        **options: Unpack[StepOptionsDict],
    ) -> Outcome[T]: ...
    @overload
    def do(
        self, name: str, fn: ContextOnly[Awaitable[T]], /, **options: Unpack[StepOptionsDict]
    ) -> Outcome[T]: ...
    @overload
    def do(self, name: str, fn: ContextOnly[T], /, **options: Unpack[StepOptionsDict]) -> Outcome[T]: ...
    @overload
    def do(
        self, name: str, fn: ContextSecond[A, Awaitable[T]], a: A, /, **options: Unpack[StepOptionsDict]
    ) -> Outcome[T]: ...
    @overload
    def do(
        self, name: str, fn: ContextSecond[A, T], a: A, /, **options: Unpack[StepOptionsDict]
    ) -> Outcome[T]: ...
    @overload
    def do(
        self,
        name: str,
        fn: ContextThird[A, B, Awaitable[T]],
        a: A,
        b: B,
        /,
        **options: Unpack[StepOptionsDict],
    ) -> Outcome[T]: ...
    @overload
    def do(
        self, name: str, fn: ContextThird[A, B, T], a: A, b: B, /, **options: Unpack[StepOptionsDict]
    ) -> Outcome[T]: ...
    @overload
    def do(
        self,
        name: str,
        fn: ContextFourth[A, B, C, Awaitable[T]],
        a: A,
        b: B,
        c: C,
        /,
        **options: Unpack[StepOptionsDict],
    ) -> Outcome[T]: ...
    @overload
    def do(
        self,
        name: str,
        fn: ContextFourth[A, B, C, T],
        a: A,
        b: B,
        c: C,
        /,
        **options: Unpack[StepOptionsDict],
    ) -> Outcome[T]: ...
    @overload
    def do(
        self,
        name: str,
        fn: Callable[..., Awaitable[T]],
        /,
        *args: Any,
        kwargs: Mapping[str, Any],
        **options: Unpack[StepOptionsDict],
    ) -> Outcome[T]: ...
    @overload
    def do(
        self,
        name: str,
        fn: Callable[..., T],
        /,
        *args: Any,
        kwargs: Mapping[str, Any],
        **options: Unpack[StepOptionsDict],
    ) -> Outcome[T]: ...
    @overload
    def do(self, name: str, /, **options: Unpack[StepOptionsDict]) -> StepDecorator: ...
    def do(  # type: ignore[misc]  # mypy does not see that `*args: Any` takes what `*args: *Ts` takes
        self,
        name: str,
        fn: Any = NO_FUNCTION,
        /,
        *args: Any,
        kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """Run `fn(*args, **kwargs)` until it succeeds once; return its recorded result.

        Sync functions run in a thread, async ones on the worker's loop. A parameter of `fn` named `ctx` receives the
        StepContext. Options: max_attempts, delay, backoff, max_delay, jitter, timeout, once, sensitive, atomic,
        on_exhausted, rollback, rollback_options.

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
            _check_no_kwargs(name, kwargs)
            return StepDecorator(self._decorator(name, options))
        named = _keyword_arguments(name, kwargs)
        if isinstance(fn, DefinedStep):  # with what it declares, under the name that is given here
            return self.run(fn.using(name=name, **options), *args, **named)
        if options:
            functions.check_options(label(name), fn, options, way='kwargs={{"{name}": ...}}')
        return self._do(name, fn, args, named, self._entrance.options(name, options))

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

        Invalid arguments raise InvalidParamsError here, and nothing is recorded. An invalid return value fails the step
        without a retry. Also raises what `do` raises.
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


def _check_no_kwargs(name: str, kwargs: object) -> None:
    if kwargs is not None:
        rule = "Above a function, step.do takes options only. Give keyword arguments where you call the function."
        raise StepConfigError("kwargs", kwargs, rule, what=label(name))


def _keyword_arguments(name: str, kwargs: object) -> dict[str, Any]:
    """Return a copy of the keyword arguments. Raises StepConfigError unless they are a mapping with names as keys."""
    if kwargs is None:
        return {}
    if isinstance(kwargs, Mapping) and all(isinstance(key, str) for key in kwargs):
        return dict(kwargs)
    rule = "It must be a dict of keyword arguments of the function, such as {'currency': 'EUR'}."
    raise StepConfigError("kwargs", kwargs, rule, what=label(name))
