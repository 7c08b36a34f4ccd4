"""Refuse what a handler may not do between its steps, and say what to write instead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

from engine.values.errors import BetweenStepsError

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")

A_CHILD = (
    "Start a child: await step.spawn(name, workflow, params), or await step.run_workflow(…) for its output."
)
IN_A_STEP = "Put it in the body of a step: await step.do(name, fn)."
_STARTS = ("start", "start_many", "get_or_start")


def refuse(function: str) -> None:
    """Raise BetweenStepsError if a handler makes this call. A body may make it."""
    if getattr(asyncio._get_running_loop(), "is_of_handler", False):
        raise BetweenStepsError(f"{function}() was called", A_CHILD if function in _STARTS else IN_A_STEP)


def of_database(error: Exception) -> BetweenStepsError:
    """Return the error to raise for Django's SynchronousOnlyOperation, whose advice (a thread) is wrong in handlers."""
    made = BetweenStepsError("The database was used", IN_A_STEP)
    made.__cause__ = error
    return made


def in_thread(function: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return the async twin of a function that uses the database."""
    refuse(function.__name__)
    return sync_to_async(function)


def async_twin(
    method: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Return the async twin of a method that uses the database: `apause` of `pause`."""

    @wraps(method)
    async def twin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        act: Callable[P, T] = getattr(self, method.__name__)
        return await in_thread(act)(*args, **kwargs)

    twin.__name__ = f"a{method.__name__}"
    return twin
