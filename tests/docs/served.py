"""The API without a server: it answers in the thread of the test, which is in the transaction of the test."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar
from unittest.mock import patch
from urllib.parse import urlsplit

import httpx2
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.test import override_settings

from studio.client import async_client, client
from studio.client.http import options_of

T = TypeVar("T")

Asked = tuple[httpx2.Request, "Future[httpx2.Response]"]


class AsyncTransport(httpx2.AsyncBaseTransport):
    """Lets the thread of the test answer what an event loop in another thread asks."""

    def __init__(self, transport: httpx2.WSGITransport) -> None:
        self._transport, self._asked = transport, queue.Queue[Asked | None]()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await request.aread()
        answer = Future[httpx2.Response]()
        self._asked.put((request, answer))
        return await asyncio.wrap_future(answer)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end, and answer what it asks."""
        with ThreadPoolExecutor(1) as threads:
            done = threads.submit(asyncio.run, coroutine)
            done.add_done_callback(lambda _: self._asked.put(None))
            while (asked := self._asked.get(timeout=60)) is not None:
                request, answer = asked
                try:
                    answer.set_result(self._answer(request))
                finally:
                    answer.cancel()  # one that was not given: else the coroutine would wait for it for ever
            return done.result()

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        response = self._transport.handle_request(request)
        content = response.read()
        response.close()
        headers = httpx2.Headers(response.headers)
        headers.pop("Content-Encoding", None)  # reading has unpacked it
        return httpx2.Response(response.status_code, headers=headers, content=content)


@contextmanager
def serving(address: str) -> Iterator[AsyncTransport]:
    """Serve this address to the clients that are made within the block."""
    transport = httpx2.WSGITransport(get_wsgi_application())
    later = AsyncTransport(transport)

    def options(settings: Any, verify: Any) -> dict[str, Any]:
        return {**options_of(settings, verify), "transport": transport}

    def async_options(settings: Any, verify: Any) -> dict[str, Any]:
        return {**options_of(settings, verify), "transport": later}

    signals = (request_started, request_finished)
    for signal in signals:  # else the end of a request would end the connection of the test
        signal.disconnect(close_old_connections)
    try:
        with (
            override_settings(ALLOWED_HOSTS=[str(urlsplit(address).hostname)]),
            patch.object(client, "options_of", options),
            patch.object(async_client, "options_of", async_options),
        ):
            yield later
    finally:
        for signal in signals:
            signal.connect(close_old_connections)
