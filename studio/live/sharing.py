"""What is drawn for open tabs, drawn once for all tabs that see the same, and not more often than it can be afforded.

Each tab that hears of a change asks for a drawing that knows it. The first to ask draws; the others wait for the same
drawing. While changes go on, the next one begins some time after the last, whenever the tabs ask: however many tabs
are open and however much changes, a view costs the same.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from weakref import WeakKeyDictionary

from studio.frame.hub import hub
from studio.frame.pieces import Drawing
from studio.frame.unchanged import read_since

REST = 2.0  # a drawing that took 0.4 s is followed by at least 0.8 s without one
MOST_KEPT = 500

Draw = Callable[[], Awaitable[Drawing]]


class Beat:
    """The moment at which several drawings begin together, and the changes that they know."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._began = -math.inf
        self._knows = -1

    async def at(self, *, knows: int, since: float, seconds_between: float) -> tuple[float, int]:
        """Return a moment at `since` or later, and how many changes were known then: so many or more.

        If the last one is not enough, there is another, but not sooner than `seconds_between` after it.
        """
        async with self._lock:
            if self._knows < knows or self._began < since:
                await asyncio.sleep(max(0.0, self._began + seconds_between - time.monotonic()))
                self._began, self._knows = time.monotonic(), hub().changes
            return self._began, self._knows


class Shared:
    """The last drawing of one thing. `is_personal` if the last one was for its user only."""

    def __init__(self) -> None:
        self.is_personal = False
        self._lock = asyncio.Lock()
        self._drawn: tuple[Drawing, Hashable] | None = None
        self._knows = -1  # the changes until then
        self._began = -math.inf
        self._took = 0.0

    async def drawing(
        self,
        draw: Draw,
        *,
        by: Hashable,
        knows: int,
        since: float,
        seconds_between: float,
        beat: Beat | None = None,
    ) -> tuple[Drawing, Hashable]:
        """Return a drawing that knows so many changes of the hub and was begun at `since` or later, and for whom.

        If there is none, one is drawn for `by`, but not sooner than `seconds_between` after the last. With a beat, it
        knows what was true at the beat: all drawings of a beat share what they read.
        """
        async with self._lock:
            if self._drawn is None or self._knows < knows or self._began < since:
                due = self._began + max(seconds_between, self._took * (1 + REST))
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                beat = beat or Beat()
                self._began, knows = await beat.at(knows=knows, since=since, seconds_between=seconds_between)
                began = time.monotonic()
                with read_since(self._began):
                    self._drawn = await draw(), by
                self._knows, self._took = knows, time.monotonic() - began
            return self._drawn


class Gallery:
    """The drawings of one event loop, by what they show and to whom."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Shared] = OrderedDict()
        self._beats: dict[Hashable, Beat] = {}

    def beat(self, of: Hashable) -> Beat:
        """Return the beat of a kind of view."""
        return self._beats.setdefault(of, Beat())

    def __getitem__(self, key: Hashable) -> Shared:
        found = self._kept.setdefault(key, Shared())
        self._kept.move_to_end(key)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return found


_galleries: WeakKeyDictionary[asyncio.AbstractEventLoop, Gallery] = WeakKeyDictionary()


def gallery() -> Gallery:
    """Return the gallery of the running loop."""
    return _galleries.setdefault(asyncio.get_running_loop(), Gallery())
