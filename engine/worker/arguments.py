"""What a body is called with: its arguments, and its `ctx` where it has a parameter of that name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from engine.replay.context import StepContext

KEYWORD = -1  # `ctx` is passed by its name
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def with_context(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], context: StepContext
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Put the context where `fn` wants it: `fn(ctx, order)` and `fn(order, ctx)` both take `args` of one order."""
    place = _place_of_context(fn)
    if place is None or "ctx" in kwargs:
        return args, kwargs
    if place == KEYWORD or place > len(args):
        return args, {**kwargs, "ctx": context}
    return (*args[:place], context, *args[place:]), kwargs


def _place_of_context(fn: Any) -> int | None:
    """Return the position of `ctx` among the positional parameters, KEYWORD, or None without such a parameter."""
    code = getattr(fn, "__code__", None)
    if code is None or hasattr(fn, "__wrapped__"):
        return _place_in_signature(fn)
    # A tenth of the time of inspect.signature, for the bodies that most steps have.
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
    if ctx is None or ctx.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        return None
    return list(parameters).index("ctx") if ctx.kind in POSITIONAL else KEYWORD
