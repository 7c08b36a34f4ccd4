"""Find the declared return type of a function."""

import collections.abc
import functools
import types
import typing
from collections.abc import Callable
from typing import Any

_AWAITABLES = (collections.abc.Awaitable, collections.abc.Coroutine)


def return_annotation(fn: Callable[..., object]) -> Any:
    """Return the return annotation of a function, method, partial or callable object; `Any` without one.

    An annotation whose names cannot be resolved is ignored: a body must not fail because of its type hints.
    """
    function = _function_of(fn)
    try:
        written = function.__annotations__.get("return", Any)
    except Exception:  # noqa: BLE001 - a builtin has none, and from Python 3.14 on reading them evaluates them
        return Any
    if written is Any:  # as with most lambdas and closures, which are new on each replay
        return Any
    if written is None:
        return type(None)
    try:
        return awaited(_resolve(written, function))
    except Exception:  # noqa: BLE001 - any expression may stand in an annotation
        return Any


def _function_of(fn: Any) -> Any:
    while isinstance(fn, functools.partial | functools.partialmethod):
        fn = fn.func
    fn = getattr(fn, "__func__", fn)
    if hasattr(fn, "__annotations__") and not isinstance(fn, type) and hasattr(fn, "__code__"):
        return fn
    if hasattr(fn, "__wrapped__"):
        return fn
    return fn if isinstance(fn, type) else type(fn).__call__


def _resolve(written: object, function: Any) -> Any:
    """Evaluate only the return annotation: another one that fails (a TYPE_CHECKING import) must not hide it."""
    holder = types.SimpleNamespace(__annotations__={"return": written})
    module = function
    while hasattr(module, "__wrapped__"):
        module = module.__wrapped__
    hints = typing.get_type_hints(
        holder, globalns=getattr(module, "__globals__", {}), localns=_closure(module), include_extras=True
    )
    return hints["return"]


def _closure(function: Any) -> dict[str, Any]:
    """Return the enclosing names that a nested function sees; its classes may be among them."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    found: dict[str, Any] = {}
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def awaited(annotation: Any) -> Any:
    """Return what is left of `Awaitable[X]` once it has been awaited."""
    if typing.get_origin(annotation) in _AWAITABLES:
        return typing.get_args(annotation)[-1]
    return annotation
