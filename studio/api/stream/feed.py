"""Read what is new about instances, once for all streams that are at the same place."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

from engine.status.changes import Cursor, Kind, Page, read
from studio.access.people import in_thread
from studio.api.stream.frames import events_of
from studio.frame.hub import hub


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a reader gets: kinds of events, and whether texts name other instances."""

    kinds: tuple[Kind, ...]
    names_relatives: bool = True


POLL_S = 10.0  # without a notification: one may have been lost
# Reads of a large instance take long. The pause between two is so many times as long, so that they cannot take up
# the database, however often the instance changes.
PAUSES = 3
LONGEST_PAUSE_S = 2.0
MOST_KEPT_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Batch:
    """A page as it is sent, and when the reading of it began and ended."""

    page: Page
    chunks: Sequence[bytes]
    began: float
    ended: float


@dataclass(slots=True)
class Lead:
    """The newest look at an instance: its mark is where all streams go next."""

    version: int
    began: float
    wanted: tuple[Cursor, Wanted]
    task: asyncio.Task[Batch]


@dataclass(slots=True, eq=False)
class Feed:
    """An instance that streams follow. `version` grows with each notification about it."""

    key: int
    kept: Kept
    version: int = 0
    readers: set[asyncio.Event] = field(default_factory=set)
    lead: Lead | None = None
    rests_until: float = 0.0

    def wake(self) -> None:
        self.version += 1
        for reader in self.readers:
            reader.set()

    def poll(self) -> None:
        """Look again if nobody has for a while."""
        if self.lead is None or time.monotonic() - self.lead.began > POLL_S:
            self.wake()

    async def next(self, cursor: Cursor, wanted: Wanted, reached: float) -> Batch:
        """Return what comes after a cursor that a stream reached at a time."""
        if cursor.until is not None:
            return await self._kept(cursor, wanted)
        lead = await self._look(cursor, wanted, reached)
        batch = await asyncio.shield(lead.task)
        if lead.wanted == (cursor, wanted):
            return batch
        # Up to the same mark: from there on, the streams share all reads.
        return await self._kept(replace(cursor, until=batch.page.until), wanted)

    async def _look(self, cursor: Cursor, wanted: Wanted, reached: float) -> Lead:
        """Return a look at the instance as it is now; all streams share it until the next notification.

        It is not from before `reached`: the stream may have been further then.
        """
        while True:
            lead = self.lead
            if lead is not None and has_failed(lead.task):
                lead = self.lead = None  # the database may be back
            if lead is not None and lead.version == self.version and lead.began >= reached:
                return lead
            if lead is not None and not lead.task.done():
                await asyncio.wait([lead.task])
            elif (rest := self.rests_until - time.monotonic()) > 0:
                await asyncio.sleep(rest)
            else:
                task = asyncio.create_task(self._read(cursor, wanted))
                self.lead = Lead(self.version, time.monotonic(), (cursor, wanted), task)
                return self.lead

    async def _kept(self, cursor: Cursor, wanted: Wanted) -> Batch:
        found = self.kept.get((cursor, wanted))
        if found is None or has_failed(found):
            found = asyncio.create_task(self._read(cursor, wanted))
            self.kept.keep((cursor, wanted), found)
        return await asyncio.shield(found)

    async def _read(self, cursor: Cursor, wanted: Wanted) -> Batch:
        batch = await in_thread(_batch, cursor, wanted)
        took = batch.ended - batch.began
        self.rests_until = batch.ended + min(took * PAUSES, LONGEST_PAUSE_S)
        return batch


def has_failed(asked: asyncio.Future[Any]) -> bool:
    """Tell whether a question ended without an answer. Whoever asks next must ask anew."""
    return asked.done() and (asked.cancelled() or asked.exception() is not None)


def _batch(cursor: Cursor, wanted: Wanted) -> Batch:
    began = time.monotonic()
    page = read(cursor, wanted.kinds, names_relatives=wanted.names_relatives)
    return Batch(page, events_of(page), began, time.monotonic())


class Kept:
    """Batches that several streams may ask for, up to a number of bytes."""

    def __init__(self) -> None:
        self._batches: OrderedDict[tuple[Cursor, Wanted], asyncio.Task[Batch]] = OrderedDict()

    def get(self, key: tuple[Cursor, Wanted]) -> asyncio.Task[Batch] | None:
        return self._batches.get(key)

    def keep(self, key: tuple[Cursor, Wanted], task: asyncio.Task[Batch]) -> None:
        self._batches[key] = task
        task.add_done_callback(lambda done: self._done(key, done))

    def clear(self) -> None:
        self._batches.clear()

    def _done(self, key: tuple[Cursor, Wanted], task: asyncio.Task[Batch]) -> None:
        if has_failed(task) and self._batches.get(key) is task:
            del self._batches[key]
        done = [(one, kept.result()) for one, kept in self._batches.items() if kept.done()]
        size = sum(len(chunk) + 200 for _, batch in done for chunk in batch.chunks)
        for one, batch in done:
            if size <= MOST_KEPT_BYTES and len(self._batches) <= 100:
                break
            size -= sum(len(chunk) + 200 for chunk in batch.chunks)
            self._batches.pop(one, None)


class Feeds:
    """The feeds of an event loop, from the one LISTEN connection of its hub."""

    def __init__(self) -> None:
        self.open: dict[int, Feed] = {}
        self.kept = Kept()

    def join(self, key: int, reader: asyncio.Event) -> Feed:
        """Follow an instance; the event is set when there may be news."""
        if not self.open:
            hub().subscribe(self._changed)
        feed = self.open.get(key)
        if feed is None:
            feed = self.open[key] = Feed(key, self.kept)
        feed.readers.add(reader)
        return feed

    async def leave(self, feed: Feed, reader: asyncio.Event) -> None:
        feed.readers.discard(reader)
        if not feed.readers and self.open.get(feed.key) is feed:
            del self.open[feed.key]
        if not self.open:
            self.kept.clear()
            await hub().unsubscribe(self._changed)

    def _changed(self, keys: frozenset[int] | None) -> None:
        for key in self.open if keys is None else keys & self.open.keys():
            self.open[key].wake()


_feeds: WeakKeyDictionary[asyncio.AbstractEventLoop, Feeds] = WeakKeyDictionary()


def feeds() -> Feeds:
    """Return the feeds of the running loop."""
    return _feeds.setdefault(asyncio.get_running_loop(), Feeds())
