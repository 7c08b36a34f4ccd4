"""One reader: the history, then what changes, until the instance ends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from django.db import Error

from engine.status.changes import Cursor
from studio.api.problems import ProblemError, problem_document
from studio.api.stream import frames, limits
from studio.api.stream.feed import Feed, Wanted, feeds
from studio.api.stream.flow import Flow
from studio.api.stream.watch import Watch

log = logging.getLogger("studio")

TICK_S = 3.0
HEARTBEAT_S = 15.0
# The connection of a reader that has taken nothing for so long is cut; it may come again with its cursor.
SLOWEST_S = 30.0


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads, from where on, and what."""

    holder: str
    is_token: bool
    cursor: Cursor
    has_cursor: bool
    wanted: Wanted


class Stream:
    """A stream that is sent to one reader."""

    def __init__(self, reader: Reader, watch: Watch, flow: Flow) -> None:
        self.reader, self.watch, self.flow = reader, watch, flow
        self.cursor = reader.cursor
        self.news = asyncio.Event()
        # A cursor that was brought along may be of a moment ago. Without one, any look will do.
        self.reached = time.monotonic() if reader.has_cursor else float("-inf")
        self.sent_at = time.monotonic()

    async def events(self) -> AsyncGenerator[bytes]:
        """Yield what is sent, and only when the connection takes more."""
        feed = feeds().join(self.cursor.key, self.news)
        try:
            with limits.counted(self.reader.holder):
                yield frames.OPENING
                async with aclosing(self._chunks(feed)) as chunks:
                    async for chunk in chunks:
                        yield chunk
                        self.sent_at = time.monotonic()
                        if not await self.flow.takes_more(SLOWEST_S):
                            log.info("Cut a stream whose reader took nothing for %g s", SLOWEST_S)
                            self.flow.abort()
                            return
        finally:
            await feeds().leave(feed, self.news)

    async def _chunks(self, feed: Feed) -> AsyncGenerator[bytes]:
        try:
            while True:
                self.news.clear()
                batch = await feed.next(self.cursor, self.reader.wanted, self.reached)
                self.reached = max(self.reached, batch.ended)
                for chunk in batch.chunks:
                    yield chunk
                self.cursor = batch.page.after
                if batch.page.end is not None:
                    return
                if batch.page.is_last:
                    async with aclosing(self._wait(feed)) as heartbeats:
                        async for heartbeat in heartbeats:
                            yield heartbeat
                elif (refused := await self.watch.check(is_news=True)) is not None:
                    raise refused
        except ProblemError as error:
            yield frames.event("error", problem_document(error))
        except Error as error:
            # The reader comes again with its cursor when the database is back.
            log.warning("A stream ended: %s", type(error).__name__)

    async def _wait(self, feed: Feed) -> AsyncGenerator[bytes]:
        """Wait for news, with heartbeats. Raises ProblemError when the reader may not read any more."""
        while True:
            try:
                await asyncio.wait_for(self.news.wait(), TICK_S)
            except TimeoutError:
                feed.poll()
            is_news = self.news.is_set()
            if (refused := await self.watch.check(is_news=is_news)) is not None:
                raise refused
            if is_news:
                return
            if time.monotonic() - self.sent_at >= HEARTBEAT_S - TICK_S:
                yield frames.HEARTBEAT
