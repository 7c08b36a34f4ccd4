"""Notify the Studio of changes: only ids, batched to about ten notifications per second and worker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from engine.worker.database.reader import Reader

FIRST_SECONDS = 0.01  # an instance that was just claimed is about to write, which is more urgent
INTERVAL_SECONDS = 0.1
PAYLOAD_LIMIT = 7900  # bytes; PostgreSQL accepts 8,000


class Changes:
    """Collects keys. The first is sent almost at once, the following ones together."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._keys: set[int] = set()
        self._wanted = asyncio.Event()

    def add(self, keys: Iterable[int]) -> None:
        self._keys.update(keys)
        if self._keys:
            self._wanted.set()

    async def run(self) -> None:
        while True:
            await self._wanted.wait()
            await asyncio.sleep(FIRST_SECONDS)
            self._wanted.clear()
            payload = ",".join(map(str, sorted(self._keys)))
            self._keys.clear()
            await self._reader.notify_changed(payload if len(payload) <= PAYLOAD_LIMIT else "*")
            await asyncio.sleep(INTERVAL_SECONDS)
