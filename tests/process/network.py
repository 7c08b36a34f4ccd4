"""A network between a database and its clients that a test can cut, stall and slow down."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.live import free_port

CHUNK = 65536


class Network:
    """A TCP port of this machine that leads to a server's Unix socket. It runs in a thread of the test's process."""

    def __init__(self, socket: Path) -> None:
        self.port = free_port()
        self.latency = 0.0  # seconds, each way
        self._socket = str(socket)
        self._links: set[_Link] = set()
        self._is_cut = False
        self._flows = True
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network", daemon=True)

    def __enter__(self) -> Network:
        self._thread.start()
        self._run(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Break every connection, and every attempt at one."""
        self._is_cut = True
        self._call(lambda: [link.abort() for link in self._links])

    def stall(self) -> None:
        """Let nothing through, and tell nobody."""
        self._flows = False
        self._call(lambda: [link.flow.clear() for link in self._links])

    def mend(self) -> None:
        """Let everything through again, with what is still under way."""
        self._is_cut, self._flows = False, True
        self._call(lambda: [link.flow.set() for link in self._links])

    def forget(self) -> None:
        """Open the way for new connections; what the others send is swallowed, as by a firewall that restarted."""
        self._is_cut, self._flows = False, True

    def _call(self, act: Callable[[], object]) -> None:
        async def run() -> None:
            act()

        self._run(run())

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        link = _Link(self, reader, writer, flows=self._flows)
        self._links.add(link)
        try:
            await link.run(self._socket)
        finally:
            self._links.discard(link)

    async def _end(self) -> None:
        self._server.close()
        while self._links:
            for link in self._links:
                link.flow.set()
                link.abort()
            await asyncio.sleep(0.005)


class _Link:
    """One client's connection and the one to the server."""

    def __init__(
        self, network: Network, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, flows: bool
    ) -> None:
        self.flow = asyncio.Event()
        if flows:
            self.flow.set()
        self._network = network
        self._reader = reader
        self._writers = [writer]

    def abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def run(self, socket: str) -> None:
        pumps: list[asyncio.Future[None]] = []
        try:
            await self.flow.wait()
            answers, requests = await asyncio.open_unix_connection(socket)
            self._writers.append(requests)
            pumps += [asyncio.ensure_future(self._pump(self._reader, requests))]
            pumps += [asyncio.ensure_future(self._pump(answers, self._writers[0]))]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            pass  # the server is away
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            self.abort()

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        """Pass on what comes, each piece after the latency: later pieces do not wait for earlier ones to arrive."""
        under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        arrival = asyncio.ensure_future(self._arrive(under_way, target))
        try:
            with suppress(OSError):
                while data := await source.read(CHUNK):
                    under_way.put_nowait((time.monotonic() + self._network.latency, data))
            under_way.put_nowait((0.0, b""))
            await arrival
        finally:
            arrival.cancel()

    async def _arrive(
        self, under_way: asyncio.Queue[tuple[float, bytes]], target: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            while True:
                due, data = await under_way.get()
                if not data:
                    return
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                await self.flow.wait()
                target.write(data)
                await target.drain()
