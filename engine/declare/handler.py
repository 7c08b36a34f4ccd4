"""What the engine reads from a workflow's handler: its arguments, its types, its source."""

from __future__ import annotations

import inspect
import textwrap
import typing
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

from engine.values.errors import DeclarationError
from engine.values.identity import fingerprint
from engine.values.syntax import parse

_EMPTY = inspect.Parameter.empty
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Handler:
    """A checked handler. `params` is the annotation of the second argument, if there is one."""

    function: Callable[..., Any]
    description: str
    takes_params: bool
    params: Any
    output: Any
    fingerprint: str
    file: str
    line: int

    @classmethod
    def of(cls, function: object) -> Handler:
        """Read a function. Raises DeclarationError that says what is wrong with it."""
        if not isinstance(function, FunctionType) or not inspect.iscoroutinefunction(function):
            raise DeclarationError(
                _what(function), "handler", "It must be a function defined with `async def`."
            )
        params = _params(function)
        code = function.__code__
        return cls(
            function=function,
            description=inspect.getdoc(function) or "",
            takes_params=params is not None,
            params=None if params is None else annotation_of(function, params.name),
            output=annotation_of(function, "return"),
            fingerprint=fingerprint(_source(function)),
            file=code.co_filename,
            line=code.co_firstlineno,
        )


def _what(function: object) -> str:
    return f"Handler {getattr(function, '__qualname__', type(function).__qualname__)}"


def _params(function: FunctionType) -> inspect.Parameter | None:
    """Return the second argument, if any, after checking that the only other argument is `step`."""
    what, arguments = _what(function), list(inspect.signature(function).parameters.values())
    for argument in arguments:
        if argument.kind not in _POSITIONAL or argument.default is not _EMPTY:
            rule = "Arguments are positional and have no default; fields of the params may have one."
            raise DeclarationError(what, f"argument `{argument}`", rule)
    if not arguments or not _is_step(arguments[0]):
        raise DeclarationError(what, "arguments", "The first one must be `step: WorkflowStep`.")
    if len(arguments) > 2:
        rule = "A handler takes `step` and at most one more argument. Put everything it needs into one type."
        raise DeclarationError(what, "arguments", rule)
    if len(arguments) == 1:
        return None
    if arguments[1].annotation is _EMPTY:
        rule = "It needs a type, which validates the params and defines the Studio's form."
        raise DeclarationError(what, f"argument `{arguments[1].name}`", rule)
    return arguments[1]


def _is_step(argument: inspect.Parameter) -> bool:
    return argument.name == "step" or str(argument.annotation).rpartition(".")[2].startswith("WorkflowStep")


def annotation_of(function: FunctionType, name: str, *, what: str = "") -> Any:
    """Resolve one annotation only: that of `step` may be importable only for type checkers.

    Raises DeclarationError, whose message begins with `what`.
    """
    if name not in function.__annotations__:
        return Any
    one = SimpleNamespace(__annotations__={name: function.__annotations__[name]})
    try:
        return typing.get_type_hints(one, function.__globals__, _closure(function), include_extras=True)[name]
    except Exception as problem:  # evaluating an annotation runs the user's code
        field = "return type" if name == "return" else f"argument `{name}`"
        rule = f"Its type cannot be resolved: {problem}. Define or import it above the handler, also at run time."
        raise DeclarationError(what or _what(function), field, rule) from problem


def _closure(function: FunctionType) -> dict[str, Any]:
    """Return the names of the enclosing function that it sees. Its own name is one of them, without a value yet."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def _source(function: FunctionType) -> str:
    """Return the source from `async def` on: a change of the decorator's options is not a change of the handler."""
    try:
        return source_from_def(inspect.getsource(function))
    except (OSError, SyntaxError, IndexError, TypeError):
        # No source, as in a shell: the compiled code also shows changes.
        return _compiled(function.__code__)


def source_from_def(source: str) -> str:
    """Return the source of a function without the decorators above it. Raises SyntaxError or IndexError."""
    source = textwrap.dedent(source)
    start = parse(source).body[0].lineno
    return "\n".join(source.splitlines()[start - 1 :])


def _compiled(code: CodeType) -> str:
    constants = [_compiled(const) if isinstance(const, CodeType) else repr(const) for const in code.co_consts]
    return repr((code.co_code, code.co_names, constants))
