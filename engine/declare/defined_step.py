"""Steps declared once and run by any workflow: `@define_step`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, Unpack, cast, overload

from engine.declare.handler import annotation_of
from engine.declare.params import codec_of
from engine.declare.step_arguments import StepArguments
from engine.declare.step_types import (
    ContextFourth,
    ContextOnly,
    ContextSecond,
    ContextThird,
    RollbackOptionsDict,
    StepOptionsDict,
    TakesContext,
)
from engine.values.errors import DeclarationError, InvalidNameError, StepConfigError
from engine.values.identity import check_step_name
from engine.values.retry import StepOptions
from engine.values.serialization import Codec, awaited

if TYPE_CHECKING:
    from engine.declare.context import StepContext

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


class DefinedStep(Generic[P, R_co]):
    """A declared step: its function, name and options. Run it with `await step.run(charge, order)`.

    Called directly, it is the plain function.
    """

    def __init__(
        self,
        fn: Callable[..., R_co],
        name: str,
        options: Mapping[str, object],
        arguments: StepArguments,
        codec: Codec,
    ) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.name = name
        self.arguments = arguments
        self.codec = codec
        self._given = dict(options)
        self._over: dict[StepOptions, StepOptions] = {}

    def __repr__(self) -> str:
        return f"<DefinedStep {self.name}>"

    @overload
    def __call__(self, ctx: StepContext, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    # mypy does not see that `*args` also takes the context.
    def __call__(self, *args: Any, **kwargs: Any) -> R_co:  # type: ignore[misc]
        return self.fn(*args, **kwargs)

    def using(self, *, name: str | None = None, **options: Unpack[StepOptionsDict]) -> DefinedStep[P, R_co]:
        """Return this step with another name or other options, for one call.

        Raises StepConfigError and InvalidNameError.
        """
        name = self.name if name is None else check_step_name(name)
        given = {**self._given, **options}
        if given.get("rollback") is None and "rollback_options" not in options:
            given.pop("rollback_options", None)
        StepOptions.make(_what(name), **given)
        return DefinedStep(self.fn, name, given, self.arguments, self.codec)

    @overload
    def rollback(self, fn: F, /) -> F: ...
    @overload
    def rollback(self, fn: None = None, /, **options: Unpack[RollbackOptionsDict]) -> Callable[[F], F]: ...
    def rollback(self, fn: Any = None, /, **options: Any) -> Any:
        """Declare the step's rollback: `@charge.rollback`, or `@charge.rollback(max_attempts=3)` with its own
        options, above a function that takes a RollbackContext.

        Raises DeclarationError if the step has one already, or for a wrong option.
        """
        if fn is None:
            return lambda function: self._undone_by(function, options)
        return self._undone_by(fn, options)

    def _undone_by(self, fn: F, options: Mapping[str, object]) -> F:
        if self._given.get("rollback") is not None:
            raise DeclarationError(_what(self.name), "rollback", "It already has a rollback.")
        added = {"rollback": fn, **({"rollback_options": options} if options else {})}
        _check_options(self.name, added)
        self._given |= added
        self._over.clear()
        return fn

    def options_over(self, defaults: StepOptions) -> StepOptions:
        """Return its options, with a workflow's defaults for those it does not set."""
        try:
            found = self._over.get(defaults)
        except TypeError:  # an unhashable callable among them
            return defaults.override(_what(self.name), **self._given)
        if found is None:
            found = self._over[defaults] = defaults.override(_what(self.name), **self._given)
        return found


# If `ctx` is not the first parameter, the arguments of a call are not checked: it may give them by name, and types keep
# the names of those that come after `ctx` only.
class DeclareStep(Protocol):
    """The decorator of functions that `@define_step(...)` with options returns."""

    @overload
    def __call__(  # type: ignore[overload-overlap]  # of the same meaning
        self, fn: TakesContext[P, R], /
    ) -> DefinedStep[P, R]: ...
    @overload
    def __call__(self, fn: ContextOnly[R], /) -> DefinedStep[[], R]: ...
    @overload
    def __call__(self, fn: ContextSecond[Any, R], /) -> DefinedStep[..., R]: ...
    @overload
    def __call__(self, fn: ContextThird[Any, Any, R], /) -> DefinedStep[..., R]: ...
    @overload
    def __call__(self, fn: ContextFourth[Any, Any, Any, R], /) -> DefinedStep[..., R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> DefinedStep[P, R]: ...


@overload
def define_step(  # type: ignore[overload-overlap]  # of the same meaning
    fn: TakesContext[P, R], /
) -> DefinedStep[P, R]: ...
@overload
def define_step(fn: ContextOnly[R], /) -> DefinedStep[[], R]: ...
@overload
def define_step(fn: ContextSecond[Any, R], /) -> DefinedStep[..., R]: ...
@overload
def define_step(fn: ContextThird[Any, Any, R], /) -> DefinedStep[..., R]: ...
@overload
def define_step(fn: ContextFourth[Any, Any, Any, R], /) -> DefinedStep[..., R]: ...
@overload
def define_step(fn: Callable[P, R], /) -> DefinedStep[P, R]: ...
@overload
def define_step(name: str | None = None, **options: Unpack[StepOptionsDict]) -> DeclareStep: ...
def define_step(fn: Any = None, /, **options: Any) -> Any:
    """Declare a step: `@define_step` or `@define_step("charge", max_attempts=3)` above a function, sync or async.

    The default name is the function's, with `-` for `_`. `step.run` validates the arguments before the call and the
    return value after it, by their annotations. A first parameter `ctx` receives the StepContext; callers omit it.
    Raises DeclarationError at once for any mistake.
    """
    if fn is not None and not isinstance(fn, str):
        return _define(fn, None, options)
    name = options.pop("name", None) if fn is None else fn
    return lambda function: _define(function, name, options)


def _define(fn: object, name: str | None, options: Mapping[str, object]) -> DefinedStep[Any, Any]:
    function = _checked_function(fn)
    name = _checked_name(function, name)
    _check_options(name, options)
    what = _what(name)
    if options.get("atomic") and inspect.iscoroutinefunction(function):
        raise DeclarationError(what, "atomic", "It needs a sync function, defined with `def`.")
    # The innermost of functions that wrap each other has the declaration.
    declared = cast(FunctionType, inspect.unwrap(function))
    arguments = StepArguments.of(declared, what=what)
    output = awaited(annotation_of(declared, "return", what=what))
    return DefinedStep(function, name, options, arguments, codec_of(output, what=what, field="return type"))


def _checked_function(fn: object) -> FunctionType:
    if isinstance(fn, FunctionType) and not (
        inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn)
    ):
        return fn
    what = f"Step {getattr(fn, '__qualname__', type(fn).__qualname__)}"
    raise DeclarationError(
        what, "function", "It must be a function defined with `def` or `async def`, without `yield`."
    )


def _checked_name(function: FunctionType, name: str | None) -> str:
    try:
        return check_step_name(function.__name__.replace("_", "-") if name is None else name)
    except InvalidNameError as problem:
        raise DeclarationError(f"Step {function.__qualname__}", "name", str(problem)) from None


def _check_options(name: str, options: Mapping[str, object]) -> None:
    try:
        StepOptions.make(_what(name), **options)
    except StepConfigError as problem:
        raise DeclarationError(_what(name), problem.option, problem.rule) from None


def _what(name: str) -> str:
    return f'Step "{name}"'
