"""Whether the connection of a stream takes more bytes.

ASGI has no backpressure under daphne: what is sent piles up in memory. The view puts the number of a `Flow` into a
header of its answer. Where the server writes (`studio.server.request_limits`), it takes the header off again, and lets
the flow know when its buffer is full and when it is empty.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Final
from weakref import WeakValueDictionary

HEADER: Final = b"x-reprise-flow"

_numbers = count(1)
_flows: WeakValueDictionary[bytes, Flow] = WeakValueDictionary()
_servers: list[str] = []  # that take the header off


class Flow:
    """The way to a reader. Without a server that reports, it always takes more."""

    def __init__(self) -> None:
        self.number = b"%d" % next(_numbers)
        self._is_free = asyncio.Event()
        self._is_free.set()
        self._abort: Callable[[], object] = bool
        _flows[self.number] = self

    @property
    def header(self) -> dict[str, str]:
        return {HEADER.decode(): self.number.decode()} if _servers else {}

    def attach(self, abort: Callable[[], object]) -> None:
        """Let the server say how to cut the connection."""
        self._abort = abort

    def abort(self) -> None:
        """Cut the connection, with what was not sent."""
        self._abort()

    async def takes_more(self, within_s: float) -> bool:
        """Wait until what was sent has left. Return whether it has."""
        try:
            await asyncio.wait_for(self._is_free.wait(), within_s)
        except TimeoutError:
            return False
        return True

    # Twisted's names, for the server.

    def pauseProducing(self) -> None:  # noqa: N802
        self._is_free.clear()

    def resumeProducing(self) -> None:  # noqa: N802
        self._is_free.set()

    def stopProducing(self) -> None:  # noqa: N802
        """The connection is lost: Django ends the stream."""
        self._is_free.set()


def serve() -> None:
    """Promise that this process takes the header off all answers."""
    _servers.append("daphne")


def flow_of(number: bytes) -> Flow | None:
    return _flows.get(number)
