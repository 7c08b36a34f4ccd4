"""Serve anonymous requests one at a time, after requests of people who are signed in, and pause after each.

A request counts as anonymous unless a view has recently accepted its session or token. All pages share one process:
without the queue, two dozen anonymous clients that ask as fast as they can take all of its time.

Deliveries of webhooks are anonymous, too, until their signature is checked. They have a lane of their own, in which
more may wait: senders come in bursts, and many do not repeat what was refused. Strangers at the pages and senders of
deliveries do not wait for each other.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from studio.access.addresses import sender_of
from studio.access.credentials import credentials_of
from studio.access.refusals import Application, Receive, Refusal, Scope, Send, refuse

T = TypeVar("T")

MOST_WAITING = 100
MOST_OF_AN_ADDRESS = 50
MOST_DELIVERIES = 600
MOST_DELIVERIES_OF_AN_ADDRESS = 300
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 0.05
LONGEST_WAIT_S = 0.1  # for people who are signed in; then an anonymous request is served all the same
KNOWN_FOR_S = 600.0
MOST_KNOWN = 10_000
RELEASE = "studio.release_turn"
ANONYMOUS = "studio.is_anonymous_turn"

TOO_MANY = Refusal(503, "Too many requests are waiting. Try again in a moment.")
# Parsing 64 KiB of parts takes Django a tenth of a second, and no form of the Studio sends them.
MULTIPART = Refusal(415, "Send forms as application/x-www-form-urlencoded.")

_known: OrderedDict[str, float] = OrderedDict()  # keys of sessions and tokens, and until when
_lock = threading.Lock()


class QueueFullError(Exception):
    """Too many requests wait for a turn already."""


class AnonymousQueue:
    """Queue anonymous requests; answer 503 when too many wait. Only requests that `applies_to` accepts are queued.

    Those for which `is_delivery` holds wait in a lane of their own.
    """

    def __init__(
        self,
        application: Application,
        applies_to: Callable[[Scope], bool],
        is_delivery: Callable[[Scope], bool] = lambda scope: False,
    ) -> None:
        self.application = application
        self.applies_to = applies_to
        self.is_delivery = is_delivery

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A request that has its turn comes again if a site is wrapped twice: it would wait for itself.
        if RELEASE in scope or not self.applies_to(scope):
            await self.application(scope, receive, send)
            return
        queue, address = _queue(), sender_of(scope)
        if is_known(scope):
            with queue.priority(scope):
                await self.application(scope, receive, send)
            return
        lane = queue.deliveries if self.is_delivery(scope) else queue.pages
        if lane.is_full_for(address):
            await refuse(scope, receive, send, TOO_MANY)
        else:
            async with queue.turn(scope, address, lane):
                if _is_multipart(scope):
                    await refuse(scope, receive, send, MULTIPART)
                else:
                    await self.application(scope, receive, send)


async def take_turn(scope: Scope, question: Callable[[Scope], Awaitable[T]]) -> T:
    """Answer a question about a request; an anonymous request waits for its turn first.

    Raises QueueFullError if too many requests are waiting.
    """
    if RELEASE in scope or is_known(scope):
        return await question(scope)
    queue, address = _queue(), sender_of(scope)
    if queue.pages.is_full_for(address):
        raise QueueFullError
    async with queue.turn(scope, address, queue.pages):
        return await question(scope)


def remember(key: str) -> None:
    """Remember that a view has accepted a session or a token. Thread-safe."""
    if not key:
        return
    with _lock:
        _known[key] = time.monotonic() + KNOWN_FOR_S
        _known.move_to_end(key)
        if len(_known) > MOST_KNOWN:
            _known.popitem(last=False)


def forget(keys: Iterable[str]) -> None:
    """Forget sessions or tokens that a view has refused. Thread-safe."""
    with _lock:
        for key in keys:
            _known.pop(key, None)


def is_known(scope: Scope) -> bool:
    """Tell whether a view has accepted the session or the token of a request lately."""
    now = time.monotonic()
    return any(_known.get(key, 0.0) > now for key in credentials_of(scope))


def release_turn(scope: MutableMapping[str, Any]) -> None:
    """Let other requests go on while this one waits for something. Thread-safe; does nothing the second time."""
    release = scope.get(RELEASE)
    if release is not None:
        release()


def accept(scope: MutableMapping[str, Any], key: str) -> None:
    """Remember that a view has accepted the session or token of a request. If it came as anonymous, release its turn.

    A request that is known keeps its priority. Thread-safe.
    """
    remember(key)
    if key and ANONYMOUS in scope:
        release_turn(scope)


class _Lane:
    """Requests that wait for each other. `most` says how many may wait, in all and of one address."""

    def __init__(self, most: Callable[[], tuple[int, int]]) -> None:
        self.most = most
        self.free = asyncio.Semaphore(1)
        self.waiting: Counter[str] = Counter()

    def is_full_for(self, address: str) -> bool:
        in_all, of_an_address = self.most()
        return self.waiting.total() >= in_all or self.waiting[address] >= of_an_address


class _Queue:
    """The queue of one event loop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.pages = _Lane(lambda: (MOST_WAITING, MOST_OF_AN_ADDRESS))
        self.deliveries = _Lane(lambda: (MOST_DELIVERIES, MOST_DELIVERIES_OF_AN_ADDRESS))
        self.prior = 0
        self.has_no_prior = asyncio.Event()
        self.has_no_prior.set()

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
    async def turn(self, scope: Scope, address: str, lane: _Lane) -> AsyncIterator[None]:
        """Wait for the turn of an anonymous request, and hold it."""
        lane.waiting[address] += 1
        try:
            await lane.free.acquire()
        finally:
            lane.waiting -= Counter([address])  # drops addresses at zero
        began = self.loop.time()
        end = _once(lambda: self._end_turn(lane, self.loop.time() - began))
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

    def _end_turn(self, lane: _Lane, took: float) -> None:
        """Start the next turn after as much time as this one took."""
        self.loop.call_later(min(max(took, SHORTEST_PAUSE_S), LONGEST_PAUSE_S), lane.free.release)

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
