"""A proxy between clients and PostgreSQL that sees every statement and can break the connection at it.

    drop before   the connection breaks before the server sees the statement
    drop after    the server runs it, and the connection breaks before the client sees the answer
    hold          the statement stays on its way until the test lets it go on: its sender may be dead by then

It runs in a thread of the test's process, between two Unix sockets.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path

from tests.faults.wire import READY, TERMINATE, Messages, Request, Requests, application_of

SOCKET = ".s.PGSQL.5432"
CANCEL_REQUEST = 80877102


class Fault(Enum):
    NONE = auto()
    DROP_BEFORE = auto()
    DROP_AFTER = auto()
    HOLD = auto()


def no_fault(request: Request) -> Fault:
    return Fault.NONE


def in_time() -> float:
    return 0.0


class Proxy:
    """Clients connect to `directory` as to a server's socket directory."""

    def __init__(self, upstream: Path, directory: Path) -> None:
        self.directory = directory
        self.decide: Callable[[Request], Fault] = no_fault  # asked in the proxy's thread, before each request
        self.lateness: Callable[[], float] = (
            in_time  # the same, before an answer goes on: seconds until it does
        )
        self._upstream = str(upstream / SOCKET)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._sessions: set[Session] = set()

    def start(self) -> Proxy:
        self._thread.start()
        self._run(self._listen())
        return self

    def stop(self) -> None:
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def hold(self, application: str = "") -> None:
        """Hold everything, in either direction, on the present connections of this application."""
        self._call(lambda: [one.hold() for one in self._of(application)])

    def release(self) -> None:
        """Release everything that is held."""
        self._call(lambda: [one.flow.set() for one in self._sessions])

    def cut(self, application: str = "") -> None:
        """Break the connections of this application."""
        self._call(lambda: [one.abort() for one in self._of(application)])

    def hang_up(self, application: str = "") -> None:
        """Break the clients' ends of the connections of this application; what they sent may still arrive."""
        self._call(lambda: [one.hang_up() for one in self._of(application)])

    def sessions(self) -> list[str]:
        """Return the applications that are connected."""
        found: list[str] = []
        self._call(lambda: found.extend(one.application for one in self._sessions))
        return sorted(found)

    def _of(self, application: str) -> list[Session]:
        """Return the sessions whose application's name contains this."""
        return [one for one in self._sessions if application in one.application]

    def _call(self, act: Callable[[], object]) -> None:
        async def run() -> None:
            act()

        self._run(run())

    def _run(self, coroutine: object) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)  # type: ignore[arg-type]

    async def _listen(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, str(self.directory / SOCKET))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = Session(self, reader, writer)
        self._sessions.add(session)
        try:
            await session.run(self._upstream)
        finally:
            self._sessions.discard(session)

    async def _end(self) -> None:
        self._server.close()
        while self._sessions:
            for session in self._sessions:
                session.flow.set()
                session.abort()
            await asyncio.sleep(0.005)


class Session:
    """One client's connection and the one that it stands for."""

    def __init__(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.application = ""
        self.flow = asyncio.Event()
        self.flow.set()
        self._proxy = proxy
        self._client = (reader, writer)
        self._writers = [writer]
        self._sent: deque[Fault] = deque()  # of each request that the server has not answered

    def hold(self) -> None:
        self.flow.clear()

    def hang_up(self) -> None:
        self._client[1].transport.abort()

    def abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def run(self, upstream: str) -> None:
        try:
            startup = await self._startup()
            self._server = await asyncio.open_unix_connection(upstream)
            self._writers.append(self._server[1])
            await self._send(self._server[1], startup)
            await self._pump_until_one_ends()
        except (OSError, asyncio.IncompleteReadError):
            pass  # one side is gone, or the server is
        finally:
            self.abort()

    async def _startup(self) -> bytes:
        reader, _ = self._client
        length = await reader.readexactly(4)
        startup = length + await reader.readexactly(int.from_bytes(length) - 4)
        if int.from_bytes(startup[4:8]) != CANCEL_REQUEST:
            self.application = application_of(startup)
            request = Request(self.application, startup, "connect", is_run=True)
            if self._proxy.decide(request) is not Fault.NONE:
                raise ConnectionError
        return startup

    async def _pump_until_one_ends(self) -> None:
        requests = asyncio.ensure_future(self._pump_requests())
        answers = asyncio.ensure_future(self._pump_answers())
        try:
            await asyncio.wait([requests, answers], return_when=asyncio.FIRST_COMPLETED)
            if requests.done() and not requests.exception():
                await answers  # the client is gone, but the server has still to do what it sent
        finally:
            for pump in (requests, answers):
                pump.cancel()
            await asyncio.gather(requests, answers, return_exceptions=True)

    async def _pump_requests(self) -> None:
        reader, requests = self._client[0], Requests(self.application)
        while data := await reader.read(65536):
            for request in requests.feed(data):
                fault = Fault.NONE if request.data[:1] == TERMINATE else self._proxy.decide(request)
                if fault is Fault.DROP_BEFORE:
                    raise ConnectionError
                if fault is Fault.HOLD:
                    self.hold()
                await self.flow.wait()
                self._sent.append(fault)
                await self._send(self._server[1], request.data)
        self._server[1].write_eof()

    async def _pump_answers(self) -> None:
        reader, messages = self._server[0], Messages()
        is_up = False
        while data := await reader.read(65536):
            if is_up and (late := self._proxy.lateness()):
                await asyncio.sleep(late)
            for kind, message in messages.feed(data):
                fault = self._sent[0] if is_up and self._sent else Fault.NONE
                if fault is Fault.DROP_AFTER and kind == READY:
                    raise ConnectionError
                if fault is not Fault.DROP_AFTER:
                    await self.flow.wait()
                if fault is not Fault.DROP_AFTER and not self._client[1].is_closing():
                    self._client[1].write(message)
                if kind == READY and is_up:
                    self._sent.popleft()
                is_up = is_up or kind == READY
            with suppress(ConnectionError):
                await self._client[1].drain()

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(data)
        await writer.drain()
