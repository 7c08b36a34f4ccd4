"""Serve anonymous requests one at a time, after requests of people who are signed in, and pause after each.

A request counts as anonymous unless a view has recently accepted its session. All pages share one process: without the
queue, two dozen anonymous clients that ask as fast as they can take all of its time.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from studio.access.addresses import sender_of
from studio.access.cookies import session_key_of
from studio.access.refusals import Application, Receive, Refusal, Scope, Send, refuse

T = TypeVar("T")

MOST_WAITING = 100
MOST_OF_AN_ADDRESS = 50
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 0.05
LONGEST_WAIT_S = 0.1  # for people who are signed in; then an anonymous request is served all the same
KNOWN_FOR_S = 600.0
MOST_KNOWN = 10_000
RELEASE = "studio.release_turn"
ANONYMOUS = "studio.is_anonymous_turn"

TOO_MANY = Refusal(503, "Too many requests are waiting. Try again in a moment.")
# Parsing 64 KiB of parts takes Django a tenth of a second, and no form of the Studio sends them.
MULTIPART = Refusal(415, "Send forms as application/x-www-form-urlencoded.")

_known: OrderedDict[str, float] = OrderedDict()  # session keys, and until when
_lock = threading.Lock()


class QueueFullError(Exception):
    """Too many requests wait for a turn already."""


class AnonymousQueue:
    """Queue anonymous requests; answer 503 when too many wait. Only requests that `applies_to` accepts are queued."""

    def __init__(self, application: Application, applies_to: Callable[[Scope], bool]) -> None:
        self.application = application
        self.applies_to = applies_to

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A request that has its turn comes again if a site is wrapped twice: it would wait for itself.
        if RELEASE in scope or not self.applies_to(scope):
            await self.application(scope, receive, send)
            return
        queue, address = _queue(), sender_of(scope)
        if is_known(session_key_of(scope)):
            with queue.priority(scope):
                await self.application(scope, receive, send)
        elif queue.is_full_for(address):
            await refuse(scope, receive, send, TOO_MANY)
        else:
            async with queue.turn(scope, address):
                if _is_multipart(scope):
                    await refuse(scope, receive, send, MULTIPART)
                else:
                    await self.application(scope, receive, send)


async def take_turn(scope: Scope, question: Callable[[Scope], Awaitable[T]]) -> T:
    """Answer a question about a request; an anonymous request waits for its turn first.

    Raises QueueFullError if too many requests are waiting.
    """
    if RELEASE in scope or is_known(session_key_of(scope)):
        return await question(scope)
    queue, address = _queue(), sender_of(scope)
    if queue.is_full_for(address):
        raise QueueFullError
    async with queue.turn(scope, address):
        return await question(scope)


def remember_session(session_key: str) -> None:
    """Remember that a view has accepted a session. Thread-safe."""
    if not session_key:
        return
    with _lock:
        _known[session_key] = time.monotonic() + KNOWN_FOR_S
        _known.move_to_end(session_key)
        if len(_known) > MOST_KNOWN:
            _known.popitem(last=False)


def is_known(session_key: str) -> bool:
    return _known.get(session_key, 0.0) > time.monotonic()


def release_turn(scope: MutableMapping[str, Any]) -> None:
    """Let other requests go on while this one waits for something. Thread-safe; does nothing the second time."""
    release = scope.get(RELEASE)
    if release is not None:
        release()


def accept_session(scope: MutableMapping[str, Any], session_key: str) -> None:
    """Remember that a view has accepted the session of a request. If the request came as anonymous, release its turn.

    A request of a known session keeps its priority. Thread-safe.
    """
    remember_session(session_key)
    if session_key and ANONYMOUS in scope:
        release_turn(scope)


class _Queue:
    """The queue of one event loop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.free = asyncio.Semaphore(1)
        self.waiting: Counter[str] = Counter()
        self.prior = 0
        self.has_no_prior = asyncio.Event()
        self.has_no_prior.set()

    def is_full_for(self, address: str) -> bool:
        return self.waiting.total() >= MOST_WAITING or self.waiting[address] >= MOST_OF_AN_ADDRESS

    @contextmanager
    def priority(self, scope: Scope) -> Iterator[None]:
        """Hold anonymous requests back."""
        self.prior += 1
        self.has_no_prior.clear()
        end = _once(self._end_priority)
        scope[RELEASE] = lambda: self.loop.call_soon_threadsafe(end)
        try:
            yield
        finally:
            end()

    @asynccontextmanager
    async def turn(self, scope: Scope, address: str) -> AsyncIterator[None]:
        """Wait for the turn of an anonymous request, and hold it."""
        self.waiting[address] += 1
        try:
            await self.free.acquire()
        finally:
            self.waiting -= Counter([address])  # drops addresses at zero
        began = self.loop.time()
        end = _once(lambda: self._end_turn(self.loop.time() - began))
        scope[ANONYMOUS] = True
        scope[RELEASE] = lambda: self.loop.call_soon_threadsafe(end)
        try:
            await self._wait_for_prior()
            began = self.loop.time()
            yield
        finally:
            end()

    def _end_priority(self) -> None:
        self.prior -= 1
        if not self.prior:
            self.has_no_prior.set()

    def _end_turn(self, took: float) -> None:
        """Start the next turn after as much time as this one took."""
        self.loop.call_later(min(max(took, SHORTEST_PAUSE_S), LONGEST_PAUSE_S), self.free.release)

    async def _wait_for_prior(self) -> None:
        try:
            await asyncio.wait_for(self.has_no_prior.wait(), LONGEST_WAIT_S)
        except TimeoutError:
            return


_queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()


def _queue() -> _Queue:
    found = _queues.get(asyncio.get_running_loop())
    if found is None:
        found = _queues[asyncio.get_running_loop()] = _Queue()
    return found


def _once(act: Callable[[], None]) -> Callable[[], None]:
    is_done = False

    def act_once() -> None:
        nonlocal is_done
        if not is_done:
            is_done = True
            act()

    return act_once


def _is_multipart(scope: Scope) -> bool:
    return any(
        name == b"content-type" and value.strip().lower().startswith(b"multipart/")
        for name, value in scope["headers"]
    )
