"""Sets of futures and tasks have the same order on every replay.

Sets are ordered by hash, and asyncio's futures hash by their address, which differs on every replay. asyncio itself
iterates over sets: a TaskGroup cancels its tasks in such an order, and `asyncio.wait` returns two sets. So the objects
of a handler's loop hash by a number, counted in the order in which the handler made them. The instance is part of the
hash, because asyncio keeps all tasks of a process in one set, where equal hashes would cost time.

A future made by `asyncio.Future()` instead of `loop.create_future()` still hashes by its address: that class cannot be
changed.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
from asyncio import events, tasks
from collections.abc import Callable, Iterable
from typing import Any

from engine.values.identity import stable_hash

# A hash consists, from its lowest bits, of the number (small in most handlers), the instance, and the kind of object.
NUMBER_BITS, INSTANCE_BITS = 12, 30
FUTURE, STRAY = 1 << 44, 1 << 45


class Numbers:
    """The numbers of one handler's objects. Tasks have their own, so that a few in a set keep their order."""

    def __init__(self, *instance: str) -> None:
        first = 1 + (stable_hash(*instance) % (1 << INSTANCE_BITS) << NUMBER_BITS)
        self.tasks = itertools.count(first)
        self.futures = itertools.count(first + FUTURE)
        # For tasks that start at another moment on each replay, and must not shift the numbers of the others.
        self.strays = itertools.count(first + STRAY)


class HandlerFuture(asyncio.Future[Any]):
    """A future of a handler's loop."""

    __slots__ = ("number",)
    number: int

    def __hash__(self) -> int:
        return self.number


class HandlerTask(asyncio.Task[Any]):
    """A task of a handler's loop."""

    __slots__ = ("number",)

    def __init__(self, coro: Any, *, loop: asyncio.AbstractEventLoop, number: int, **kwargs: Any) -> None:
        self.number = number  # before asyncio puts it into its own set
        super().__init__(coro, loop=loop, **kwargs)

    def __hash__(self) -> int:
        return self.number


def order_asyncio(kind: type[Any]) -> None:
    """Let asyncio's functions keep that order on loops of this kind, and do what they did on others."""
    tasks._GatheringFuture.__hash__ = _hash_of_gather  # type: ignore[attr-defined]
    _replace("as_completed", functools.partial(_as_completed, kind))
    _replace("all_tasks", functools.partial(_all_tasks, kind))


def _hash_of_gather(gathering: Any) -> int:
    """Hash what `asyncio.gather` returns by its first part."""
    return hash(gathering._children[0]) ^ FUTURE


def _as_completed(kind: type[Any], original: Callable[..., Any], fs: Any, **kwargs: Any) -> Any:
    """Make the tasks in the order of their coroutines, which asyncio would put into a set first."""
    if isinstance(events._get_running_loop(), kind) and isinstance(fs, Iterable) and not asyncio.isfuture(fs):
        fs = [asyncio.ensure_future(one) for one in dict.fromkeys(fs)]
    return original(fs, **kwargs)


def _all_tasks(kind: type[Any], original: Callable[..., Any], loop: Any = None) -> Any:
    mine = events._get_running_loop() if loop is None else loop
    return set(mine.open_tasks()) if isinstance(mine, kind) else original(loop)


def _replace(name: str, replacement: Callable[..., Any]) -> None:
    original = getattr(asyncio, name)

    @functools.wraps(original)
    def replaced(*args: Any, **kwargs: Any) -> Any:
        return replacement(original, *args, **kwargs)

    for module in (asyncio, tasks):
        setattr(module, name, replaced)
