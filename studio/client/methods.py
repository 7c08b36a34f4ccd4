"""Make methods of the clients from operations: the same arguments and documentation, sent in two ways."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from studio.client.call import Call, Pages

P = ParamSpec("P")
T = TypeVar("T")


class Sends(Protocol):
    def send(self, call: Call[T], /) -> T: ...


class SendsLater(Protocol):
    async def send(self, call: Call[T], /) -> T: ...


def method(make: Callable[P, Call[T]]) -> Callable[Concatenate[Sends, P], T]:
    """Return a method that sends the call."""

    @wraps(make)
    def send(client: Sends, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return client.send(make(*args, **kwargs))

    return send


def async_method(make: Callable[P, Call[T]]) -> Callable[Concatenate[SendsLater, P], Awaitable[T]]:
    """Return the same for the async client."""

    @wraps(make)
    async def send(client: SendsLater, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await client.send(make(*args, **kwargs))

    return send


def pages(make: Callable[P, Pages[T]]) -> Callable[Concatenate[Sends, P], Iterator[T]]:
    """Return a method that iterates over all rows, page by page."""

    @wraps(make)
    def iterate(client: Sends, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        listed, cursor = make(*args, **kwargs), None
        while True:
            page: Any = client.send(listed.page(cursor))
            yield from page[listed.key]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    return iterate


def async_pages(make: Callable[P, Pages[T]]) -> Callable[Concatenate[SendsLater, P], AsyncIterator[T]]:
    """Return the same for the async client."""

    @wraps(make)
    async def iterate(client: SendsLater, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        listed, cursor = make(*args, **kwargs), None
        while True:
            page: Any = await client.send(listed.page(cursor))
            for one in page[listed.key]:
                yield one
            cursor = page["next_cursor"]
            if cursor is None:
                return

    return iterate
