"""The calls of `step` for many items, each of which is a step of its own: `map`, `for_each` and `batch`."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Protocol, TypeVar, Unpack, cast, overload

from engine.declare.context import StepContext
from engine.declare.defined_step import DefinedStep
from engine.declare.step_types import StepOptionsDict
from engine.replay.attempts import functions
from engine.replay.attempts.maps import MapOperation, Work
from engine.replay.calls.call import INERT
from engine.replay.calls.unawaited import check_awaited
from engine.replay.step.entrance import Entrance
from engine.values import signatures
from engine.values.errors import StepConfigError
from engine.values.identity import check_step_name
from engine.values.retry import StepOptions
from engine.values.serialization import Codec
from engine.values.states import StepKind

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741 - of an item
T_co = TypeVar("T_co", covariant=True)
I_contra = TypeVar("I_contra", contravariant=True)
MAX_CONCURRENCY = 1000
MAX_BATCH_SIZE = 10_000


class TakesContext(Protocol[I_contra, T_co]):
    """A function of an item that takes its context by name."""

    def __call__(self, item: I_contra, index: int, /, *, ctx: StepContext) -> T_co: ...


# The function for each item. If it has a parameter `ctx`, that may come first or last.
OnItem = Callable[[I, int], T]
WithContext = Callable[[I, int, StepContext], T] | Callable[[StepContext, I, int], T]
OnAny = OnItem[I, T] | WithContext[I, T] | TakesContext[I, T]


class Collections:
    """The operations of a WorkflowStep on collections of items."""

    _entrance: Entrance

    @overload
    def map(
        self,
        name: str,
        items: Iterable[I],
        fn: OnItem[I, Awaitable[T]],
        /,
        *,
        concurrency: int = 10,
        **options: Unpack[StepOptionsDict],
    ) -> Coroutine[Any, Any, list[T]]: ...
    @overload
    def map(
        self,
        name: str,
        items: Iterable[I],
        fn: OnItem[I, T],
        /,
        *,
        concurrency: int = 10,
        **options: Unpack[StepOptionsDict],
    ) -> Coroutine[Any, Any, list[T]]: ...
    @overload
    def map(
        self,
        name: str,
        items: Iterable[I],
        fn: WithContext[I, Awaitable[T]],
        /,
        *,
        concurrency: int = 10,
        **options: Unpack[StepOptionsDict],
    ) -> Coroutine[Any, Any, list[T]]: ...
    @overload
    def map(
        self,
        name: str,
        items: Iterable[I],
        fn: WithContext[I, T],
        /,
        *,
        concurrency: int = 10,
        **options: Unpack[StepOptionsDict],
    ) -> Coroutine[Any, Any, list[T]]: ...
    @overload
    def map(
        self,
        name: str,
        items: Iterable[I],
        fn: TakesContext[I, Awaitable[T]],
        /,
        *,
        concurrency: int = 10,
        **options: Unpack[StepOptionsDict],
    ) -> Coroutine[Any, Any, list[T]]: ...
    @overload
    def map(
        self,
        name: str,
        items: Iterable[I],
        fn: TakesContext[I, T],
        /,
        *,
        concurrency: int = 10,
        **options: Unpack[StepOptionsDict],
    ) -> Coroutine[Any, Any, list[T]]: ...
    def map(
        self, name: str, items: Any, fn: Any, /, *, concurrency: int = 10, **options: Any
    ) -> Coroutine[Any, Any, Any]:
        """Run `fn(item, index)` for each item, at most `concurrency` at a time; return the results in order.

        Each item is a step of its own, with attempts, and runs once: a replay continues with the rest. The options of
        `step.do` apply to each item. Once one has failed for good, no other begins. When those under way have ended,
        StepError names the first that failed, as "name[index]".

        Raises StepConfigError for a wrong argument or option, InvalidParamsError for an item that does not match the
        arguments of a step made by `@define_step`, LimitError if the items exceed the workflow's max_steps; all
        before anything begins.
        """
        return self._each("map", name, items, fn, concurrency, options)

    def for_each(
        self,
        name: str,
        items: Iterable[I],
        fn: OnAny[I, object],
        /,
        *,
        concurrency: int = 10,
        **options: Unpack[StepOptionsDict],
    ) -> Coroutine[Any, Any, None]:
        """Do what `map` does, but return None. The results stay recorded."""
        return self._each("for_each", name, items, fn, concurrency, {**options})

    def batch(
        self,
        name: str,
        items: Iterable[I],
        fn: OnAny[list[I], object],
        /,
        *,
        batch_size: int = 20,
        **options: Unpack[StepOptionsDict],
    ) -> Coroutine[Any, Any, None]:
        """Run `fn(batch, start_index)` for each `batch_size` items, one batch after another; return None.

        Each batch is a step of its own, named "name[number]" in errors, counted from 0.
        """
        operation = "batch"
        _check_number(operation, "batch_size", batch_size, MAX_BATCH_SIZE)
        return self._each(operation, name, items, fn, 1, {**options}, batch_size)

    def _each(
        self,
        operation: str,
        name: str,
        items: Any,
        fn: Any,
        concurrency: int,
        options: dict[str, Any],
        batch_size: int | None = None,
    ) -> Coroutine[Any, Any, Any]:
        cycle = self._entrance.enter(operation, name)
        if cycle is None:
            return INERT
        check_step_name(name)
        _check_number(operation, "concurrency", concurrency, MAX_CONCURRENCY)
        if options and not isinstance(fn, DefinedStep):
            functions.check_options(f'Step "{name}"', fn, options, way="functools.partial(fn, {name}=...)")
        body, made, codec = self._body(operation, name, fn, options)
        check_awaited("it was passed to another step", items)
        args = _arguments(operation, items, batch_size, most=cycle.workflow.max_steps)
        cycle.step_count.add(len(args))
        if isinstance(fn, DefinedStep):
            args = _validated(name, fn, args, is_sensitive=made.sensitive)
        work = Work(operation, args, body, made, codec, concurrency, batch_size)
        return cycle.enter(
            MapOperation(cycle, cycle.identities.record_of(StepKind.MAP, name, once=made.once), work)
        )

    def _body(
        self, operation: str, name: str, fn: Any, options: dict[str, Any]
    ) -> tuple[Callable[..., Any], StepOptions, Codec]:
        if isinstance(fn, DefinedStep):
            made = (fn.using(**options) if options else fn).options_over(self._entrance.defaults)
        else:
            made = self._entrance.options(name, options)
        _check_function(operation, name, fn)
        if made.atomic:
            functions.check_is_sync(name, getattr(fn, "fn", fn))
        return (fn.fn, made, fn.codec) if isinstance(fn, DefinedStep) else (fn, made, functions.codec_of(fn))


def _arguments(operation: str, items: Any, batch_size: int | None, *, most: int) -> list[tuple[Any, int]]:
    """Return the arguments of each call. At most one more than `most` is taken from a generator."""
    try:
        given = iter(items)
    except TypeError:
        rule = "It must be something to go through, such as a list; an asynchronous generator is not."
        raise StepConfigError("items", items, rule, what=f"Argument of step.{operation}") from None
    if batch_size is None:
        return [(item, index) for index, item in enumerate(itertools.islice(given, most + 1))]
    taken = list(itertools.islice(given, most * batch_size + 1))
    return [(taken[start : start + batch_size], start) for start in range(0, len(taken), batch_size)]


def _validated(
    name: str, defined: DefinedStep[Any, Any], args: list[tuple[Any, int]], *, is_sensitive: bool
) -> list[tuple[Any, int]]:
    """Check the arguments of a reusable step for each item, as `step.run` does, before any begins."""
    checked = []
    for at, one in enumerate(args):
        what = f'arguments of step "{name}[{at}]"'
        valid, _ = functions.arguments_of(defined, one, {}, what=what, is_sensitive=is_sensitive)
        checked.append(cast("tuple[Any, int]", valid))
    return checked


def _check_function(operation: str, name: str, fn: Any) -> None:
    takes = "batch, start_index" if operation == "batch" else "item, index"
    usage = f"await step.{operation}(name, items, fn) calls fn({takes})"
    functions.check_is_function(fn, f"step.{operation}", usage)
    plain = fn.fn if isinstance(fn, DefinedStep) else fn
    placed, named = signatures.with_context(plain, (None, 0), {}, None)
    problem = signatures.misfit(plain, placed, named)
    if problem:
        rule = (
            f"step.{operation} calls it as fn({takes}), with ctx where it has a parameter of that name, and "
            f"{signatures.shown(plain)} cannot be called so: {problem}."
        )
        raise StepConfigError("fn", fn, rule, what=f'Step "{name}"')


def _check_number(operation: str, option: str, value: object, most: int) -> None:
    if type(value) is not int or not 1 <= value <= most:
        rule = f"It must be an integer from 1 to {most:,}."
        raise StepConfigError(option, value, rule, what=f"Argument of step.{operation}")
