"""The work of the pusher: fetch ordinary tasks for the workers, and run quarantined instances."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import psycopg

from engine.values.system import is_system
from engine.worker.cluster.broker_connection import BrokerConnection, Hints
from engine.worker.cluster.process_locks import Flag
from engine.worker.cluster.quarantine import QUARANTINE_SECONDS, Quarantine
from engine.worker.drain import Drain
from engine.worker.membership import Membership

# django-q checks only between two calls whether to stop.
TICK_SECONDS = 0.5
BEAT_SECONDS = 5.0

# Notifications may be lost, rows are not: read them at least this often.
SWEEP_SECONDS = 5.0

# While tasks wait and the workers' queue is full: soon at first, because most tasks are short.
FIRST_PAUSE = 0.0005
LONGEST_PAUSE = 0.02

# After a death, until what the process left has been taken back.
AFTER_DEATH_SECONDS = 1.0
DEATH_PAUSE = 0.05

Package = tuple[int | None, str]


class Room(Protocol):
    """The part of the workers' queue that is used here."""

    def qsize(self) -> int: ...


@dataclass
class Dispatcher:
    """Waits for work and returns it as django-q's packages. Runs in the pusher."""

    connection: BrokerConnection
    stop: Flag
    room: Room
    room_size: int  # 0 if the cluster runs no tasks
    retry: float
    slots: int  # of all shifts of the cluster
    workflows: Callable[[], Iterable[str]]
    limits: Callable[[], Mapping[str, int]]  # of the workflows with a limit
    is_sound: Callable[[str], bool]
    quarantine: Quarantine
    membership: Membership
    drain: Drain = field(default_factory=Drain)

    def __post_init__(self) -> None:
        self._tasks_at = self._beat_at = self._quarantine_at = 0.0
        self._pause = 0.0
        self._death_at = float("-inf")

    def next(self) -> list[Package]:
        """Return the available work, after at most half a second."""
        packages: list[Package] = []
        if not self.stop.is_set():
            try:
                packages = self._next()
            except psycopg.Error as error:
                self.connection.lose(error)
        if self.stop.is_set():
            # Now, because django-q may not call this again.
            self._leave()
        return packages

    def _next(self) -> list[Package]:
        if self.connection.open():
            self._note(self.connection.wait(self._seconds_to_wait()))
            return [] if self.stop.is_set() else self._work(time.monotonic())
        self.connection.wait(TICK_SECONDS)
        # Nothing known before is valid when the database is back.
        self._tasks_at = self._beat_at = self._quarantine_at = 0.0
        return []

    def _seconds_to_wait(self) -> float:
        until = min(self._beat_at, self._quarantine_at, *([self._tasks_at] if self.room_size else []))
        return min(max(until - time.monotonic(), 0.0), TICK_SECONDS)

    def _note(self, hints: Hints) -> None:
        now = time.monotonic()
        if hints.drain:
            self._beat_at = now
        if hints.tasks:
            self._tasks_at = now
        if hints.death:
            self._quarantine_at = self._death_at = now

    def _work(self, now: float) -> list[Package]:
        if now >= self._beat_at:
            self._beat_at = now + BEAT_SECONDS
            names = sorted(name for name in self.workflows() if not is_system(name))
            row = self.connection.beat(self.membership, self.drain, workflows=names, slots=self.slots)
            self._learn(row)
        if self.quarantine.collect():
            self.connection.tell_death()
        if now >= self._quarantine_at:
            self._look_for_quarantined(now)
        if self.room_size and now >= self._tasks_at:
            return self._claim_tasks(now, room=self.room_size - self.room.qsize())
        return []

    def _learn(self, row: Sequence[Any]) -> None:
        if row and self.drain.learn(row):
            self.quarantine.drain(is_on=self.drain.is_on)
            self._quarantine_at = 0.0

    def _look_for_quarantined(self, now: float) -> None:
        if self.drain.is_on:
            self._quarantine_at = now + SWEEP_SECONDS
            return
        waiting = self.connection.quarantined(workflows=list(self.workflows()), limits=self.limits())
        if waiting:
            self.quarantine.open(now, waiting)
            self._quarantine_at = now + QUARANTINE_SECONDS
        elif now < self._death_at + AFTER_DEATH_SECONDS:
            self._quarantine_at = now + DEATH_PAUSE  # what the dead process held is being taken back
        else:
            self._quarantine_at = now + SWEEP_SECONDS

    def _claim_tasks(self, now: float, *, room: int) -> list[Package]:
        """Claim only what fits: claimed tasks that have not started are delayed by `retry` seconds after a kill."""
        if room <= 0:
            self._pause = min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
            self._tasks_at = now + self._pause
            return []
        tasks = self.connection.claim_tasks(limit=room, retry=self.retry)
        self._pause = 0.0
        self._tasks_at = now + (0 if len(tasks) == room else SWEEP_SECONDS)
        return [(key, payload) for key, payload in tasks if self.is_sound(payload)]

    def _leave(self) -> None:
        # Not worth opening a connection: a leftover row is deleted later.
        with suppress(psycopg.Error):
            self.connection.leave(self.membership)
        self.connection.close()
        self.quarantine.wait()
        # The sentinel ends django-q's loop soon; until then it calls this again.
        time.sleep(0.01)
