"""A way to the database whose answers come late at times, as over a network that loses packets.

It can also be blocked: what goes in stays in, nothing is refused and nobody is told.

`python -m tests.chaos.proxy PORT SOCKET`; SIGUSR1 blocks it, SIGUSR2 lets everything through again.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys

from tests.process import ledger

CHUNK = 65536
LATE = 0.1  # of the answers
LATE_SECONDS = 0.03


class Proxy:
    def __init__(self, socket: str) -> None:
        self.socket = socket
        self.open = asyncio.Event()
        self.open.set()
        self.held = 0
        self.tasks: set[asyncio.Task[None]] = set()

    def block(self) -> None:
        self.held = 0
        self.open.clear()

    def unblock(self) -> None:
        self.open.set()
        ledger.write("black hole", instance="proxy", attempt=self.held)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._pass()
            upper_reader, upper_writer = await asyncio.open_unix_connection(self.socket)
        except OSError:
            writer.close()
            return
        both = (self._pump(reader, upper_writer), self._pump(upper_reader, writer, late=LATE))
        tasks = [asyncio.ensure_future(one) for one in both]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for end in (writer, upper_writer):
            end.close()

    async def _pump(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, late: float = 0.0
    ) -> None:
        try:
            while chunk := await source.read(CHUNK):
                if random.random() < late:
                    await asyncio.sleep(random.uniform(0.0, LATE_SECONDS))
                await self._pass()
                target.write(chunk)
                await target.drain()
        except OSError:
            return

    async def _pass(self) -> None:
        if not self.open.is_set():
            self.held += 1
            await self.open.wait()


async def main(port: int, socket: str) -> None:
    proxy = Proxy(socket)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, proxy.block)
    loop.add_signal_handler(signal.SIGUSR2, proxy.unblock)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
