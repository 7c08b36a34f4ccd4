"""Check the arguments of a call before the call: wrong arguments are wrong at every attempt."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

KEYWORD = -1  # `ctx` is passed by its name
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
MAX_SHOWN = 200  # characters of a signature


def with_context(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], context: Any
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Insert the context where `fn` expects it: `fn(ctx, order)` and `fn(order, ctx)` both have `args` of one order.

    Without a context (None), its place is kept.
    """
    place = _place_of_context(fn)
    if place is None or "ctx" in kwargs:
        return args, kwargs
    if context is not None:
        context.options = context.options.copy()  # a copy, because the body may change it
    if place == KEYWORD or place > len(args):
        return args, {**kwargs, "ctx": context}
    return (*args[:place], context, *args[place:]), kwargs


def misfit(fn: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any] | None = None) -> str:
    """Return what is wrong with these arguments, such as "missing a required argument: 'cents'", or an empty string."""
    given = tuple(args)
    if not kwargs and _takes_so_many(fn, len(given)):
        return ""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # a builtin without a signature
        return ""
    try:
        signature.bind(*given, **(kwargs or {}))
    except TypeError as problem:
        return str(problem)
    return ""


def takes(fn: Callable[..., Any], name: str) -> bool:
    """Return whether the function has a parameter of that name."""
    try:
        parameter = inspect.signature(fn).parameters.get(name)
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.kind not in VARIABLE


def shown(fn: Any) -> str:
    """Show the function with its signature."""
    inner = fn
    while isinstance(inner, functools.partial):
        inner = inner.func
    name = getattr(inner, "__name__", type(inner).__qualname__)
    try:
        return f"{name}{parameters_of(inspect.signature(fn))}"
    except (TypeError, ValueError):
        return f"{name}(…)"


def parameters_of(signature: inspect.Signature) -> str:
    """Show the parameters without their types."""
    empty = inspect.Parameter.empty
    plain = [one.replace(annotation=empty) for one in signature.parameters.values()]
    text = str(inspect.Signature(plain))
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _takes_so_many(fn: Any, count: int) -> bool:
    """Return whether a plain function certainly takes this number of positional arguments.

    This takes a tenth of the time of inspect.signature, and covers the bodies of most steps.
    """
    code = getattr(fn, "__code__", None)
    if code is None or hasattr(fn, "__wrapped__") or hasattr(fn, "__signature__"):
        return False
    most = code.co_argcount - inspect.ismethod(fn)
    least = most - len(fn.__defaults__ or ())
    needs_keywords = code.co_kwonlyargcount > len(fn.__kwdefaults__ or ())
    return least <= count <= most and not needs_keywords


def _place_of_context(fn: Any) -> int | None:
    """Return the position of `ctx` among the positional parameters, KEYWORD, or None without such a parameter."""
    code = getattr(fn, "__code__", None)
    if code is None or hasattr(fn, "__wrapped__"):
        return _place_in_signature(fn)
    positional: tuple[str, ...] = code.co_varnames[: code.co_argcount]
    if "ctx" in positional:
        return positional.index("ctx") - inspect.ismethod(fn)
    by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    return KEYWORD if "ctx" in by_name else None


def _place_in_signature(fn: Any) -> int | None:
    try:
        parameters = inspect.signature(fn).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return None
    ctx = parameters.get("ctx")
    if ctx is None or ctx.kind in VARIABLE:
        return None
    return list(parameters).index("ctx") if ctx.kind in POSITIONAL else KEYWORD
