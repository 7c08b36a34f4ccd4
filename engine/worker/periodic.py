"""Periodic work of a shift: schedules when they are due, search paths and code at its start, counts, housekeeping."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

from django.db import Error

from engine.declare.registry import workflows
from engine.steer import code_versions, failure_counts, housekeeping, retention, workflow_counts
from engine.steer.indexing import paths
from engine.worker import schedules
from engine.worker.bodies.thread_calls import call_on
from engine.worker.bodies.threads import Threads
from engine.worker.database.reader import Reader

log = logging.getLogger("engine.shift")

LOOK_SECONDS = 5.0  # a schedule may have been resumed, or added by another cluster
SYNC_SECONDS = 300.0  # rows may have been deleted or changed by an older cluster
COUNT_SECONDS = 300.0
FOLD_SECONDS = 5.0  # readers add up what has come since
KEEP_SECONDS = 300.0  # as for schedules
FIRST_KEEP_SECONDS = 2.0  # a start has more urgent work
RETENTION_SECONDS = 3600.0
FIRST_RETENTION_SECONDS = 60.0

# The front shift fires what is due; the others fire what it leaves, because it may be stuck or gone.
OTHERS_SECONDS = 2.0
AGAIN_SECONDS = 1.0  # what stays due was refused, or its row is locked


class Periodic:
    """Runs schedules and retention in threads of its own, so that neither waits for ordinary tasks or bodies."""

    def __init__(self, reader: Reader, is_front: Callable[[], bool]) -> None:
        self._reader = reader
        self._is_front = is_front
        self._threads = Threads(2, name="periodic", keeps_sessions=False)

    async def run(self) -> None:
        try:
            await asyncio.gather(
                self._fire_schedules(),
                self._register_paths(),
                self._keep_code(),
                self._fold_counts(),
                self._count_failures(),
                self._delete_old(),
            )
        finally:
            self._threads.stop()

    async def _fire_schedules(self) -> None:
        sync_at = 0.0
        while True:
            due_in = min(await self._next_schedule(), sync_at - time.monotonic())
            if due_in > 0:
                await asyncio.sleep(min(due_in, LOOK_SECONDS))
                continue
            if await self._done(schedules.fire_due):
                sync_at = time.monotonic() + SYNC_SECONDS
            await asyncio.sleep(AGAIN_SECONDS)

    async def _next_schedule(self) -> float:
        """Return in how many seconds this shift should fire the next schedule."""
        next_in = await self._reader.next_schedule(sorted(workflows))
        if next_in is None:
            return LOOK_SECONDS
        return next_in if self._is_front() else next_in + OTHERS_SECONDS

    async def _register_paths(self) -> None:
        """Add the declared search paths: at the start, and again if the code of another cluster removed some."""
        while True:
            is_done = await self._done(paths.register)
            await asyncio.sleep(SYNC_SECONDS if is_done else AGAIN_SECONDS)

    async def _keep_code(self) -> None:
        """Keep the source of what this process runs. If that fails, pages do not have it, and nothing else suffers."""
        await asyncio.sleep(FIRST_KEEP_SECONDS)
        while True:
            await self._done(code_versions.keep)
            await asyncio.sleep(KEEP_SECONDS)

    async def _fold_counts(self) -> None:
        while True:
            await asyncio.sleep(FOLD_SECONDS)
            if self._is_front():
                await self._done(workflow_counts.fold)

    async def _count_failures(self) -> None:
        while True:
            await asyncio.sleep(COUNT_SECONDS)
            if self._is_front():
                await self._done(failure_counts.count)

    async def _delete_old(self) -> None:
        await asyncio.sleep(FIRST_RETENTION_SECONDS)
        while True:
            if self._is_front():
                for sweep in (
                    retention.sweep,
                    failure_counts.purge,
                    workflow_counts.purge,
                    code_versions.purge,
                    *housekeeping.sweepers(),
                ):
                    await self._done(sweep)
                await asyncio.sleep(RETENTION_SECONDS)
            await asyncio.sleep(LOOK_SECONDS)

    async def _done(self, act: Callable[[], Any]) -> bool:
        """Run it in a thread. Return whether it succeeded."""
        try:
            await call_on(self._threads, act)
        except Error as error:
            log.warning("Periodic work failed and is tried again: %s", error)
            return False
        return True
