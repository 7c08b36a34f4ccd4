"""What several pages and tabs show alike is read once, and again only when something was written.

It is never older than the last write that had ended when it was asked for: PostgreSQL says whether there was one
(`engine.status.last_write`). Those who ask while somebody reads wait, and share the next reading that begins after they
had asked. Drawings for open tabs that begin at one moment share what is read from then on. A page that shows several
of them asks once. The key has to name everything that decides what is read: above all the workflows that may be seen.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

from engine.status.last_write import last_write

# What follows from the clock alone: since when something is overdue, or what was an hour ago.
OLDEST_S = 10.0
WAIT_S = 3.0  # for somebody who reads; then everybody reads for themselves

T = TypeVar("T")

_since: ContextVar[float] = ContextVar("since", default=math.inf)
_look: ContextVar[tuple[float, str | None] | None] = ContextVar("look", default=None)


@contextmanager
def read_since(moment: float) -> Iterator[None]:
    """Let what was read from this moment on be new enough, whatever was written after it: the next drawing has that."""
    token = _since.set(moment)
    try:
        yield
    finally:
        _since.reset(token)


@contextmanager
def one_look() -> Iterator[None]:
    """Ask PostgreSQL only once for what is read inside: it is as new as this moment. Nothing may be written inside."""
    token = _look.set(_now())
    try:
        yield
    finally:
        _look.reset(token)


def _now() -> tuple[float, str | None]:
    return time.monotonic(), last_write()


class _Kept(Generic[T]):
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.found: T | None = None
        self.mark = ""
        self.began = -math.inf


class Unchanged(Generic[T]):
    """What was read last, by key: at most `most` keys, those that were asked for last. Threads may share it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, _Kept[T]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, key: Hashable, ask: Callable[[], T]) -> T:
        """Return what `ask` returns, or what it has returned if that is still true."""
        moment, mark = _look.get() or _now()
        asked_at = min(moment, _since.get())
        if mark is None:
            return ask()
        kept = self._at(key)
        if not kept.lock.acquire(timeout=WAIT_S):
            return ask()
        try:
            is_new = kept.mark == mark or kept.began >= asked_at
            if kept.found is None or not is_new or time.monotonic() - kept.began > OLDEST_S:
                began = time.monotonic()
                kept.found, kept.mark, kept.began = ask(), mark, began
            return kept.found
        finally:
            kept.lock.release()

    def _at(self, key: Hashable) -> _Kept[T]:
        with self._lock:
            kept = self._kept.setdefault(key, _Kept())
            self._kept.move_to_end(key)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return kept
