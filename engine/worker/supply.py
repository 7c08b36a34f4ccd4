"""What the pusher brings to the workers: shifts that are missing, and people's ordinary tasks."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import psycopg

from engine.worker.agenda import AGAIN_SECONDS, Agenda, Chore
from engine.worker.latch import Latch
from engine.worker.places import Places
from engine.worker.roster import Roster
from engine.worker.ward import WARD_SECONDS, Ward
from engine.worker.watch import Watch

# django-q asks between two calls whether to stop; nothing else tells it.
TICK_SECONDS = 0.5
BEAT_SECONDS = 5.0

# While tasks wait and the workers' queue is full: first soon, because most tasks are short.
FIRST_PAUSE = 0.0005
LONGEST_PAUSE = 0.02

NEVER = float("inf")

Package = tuple[int | None, str]


class Room(Protocol):
    """The queue towards the workers, as far as it matters here."""

    def qsize(self) -> int: ...


@dataclass
class Supply:
    """Wait for work and return it as django-q's packages. Lives in the pusher."""

    watch: Watch
    places: Places
    stop: Latch
    room: Room
    room_size: int
    retry: float
    slots: int
    workflows: Callable[[], Iterable[str]]
    limits: Callable[[], Mapping[str, int]]  # of the workflows that have one
    codes: Callable[[], Mapping[str, str]]  # of the workflows that pause when theirs changes
    make_shift: Callable[[int], str]
    make_chore: Callable[[Chore], str]
    is_sound: Callable[[str], bool]
    ward: Ward
    agenda: Agenda
    seat: int = field(default_factory=lambda: -1 - secrets.randbelow(2**31 - 1))

    def __post_init__(self) -> None:
        self.roster = Roster(self.places.count)
        self.name = f"{socket.gethostname()}:{os.getppid()}"
        self._tasks_at = 0.0
        self._beat_at = 0.0
        self._goes_back = False  # a shift would find old instances whose code is back
        self._pause = 0.0
        self._isolated_at = NEVER
        self._death_at = -NEVER

    def next(self) -> list[Package]:
        """Return what is there to do, after at most half a second."""
        packages: list[Package] = []
        if not self.stop.is_set():
            try:
                packages = self._next()
            except psycopg.Error as error:
                self.watch.lose(error)
        if self.stop.is_set():
            # Now: django-q may not come here again.
            self._leave()
        return packages

    def _next(self) -> list[Package]:
        if self.watch.open():
            self._wait()
            return [] if self.stop.is_set() else self._work(time.monotonic())
        self.watch.wait(TICK_SECONDS)
        # Nothing that was known before holds when the database is back.
        self.agenda.begin()
        self.roster.look_at = self._tasks_at = self._beat_at = 0.0
        return []

    def _wait(self) -> None:
        now = time.monotonic()
        self.roster.count(self.places.taken(), now)
        marks = (self.roster.look_at, self._tasks_at, self._beat_at, self._isolated_at, self.agenda.next_at)
        until = min(marks) - now
        hints = self.watch.wait(min(max(until, 0.0), TICK_SECONDS))
        now = time.monotonic()
        if hints.work:
            self.roster.wake(now)
        if hints.tasks:
            self._tasks_at = now
        if hints.death:
            self._isolated_at, self._death_at = now + WARD_SECONDS / 10, now

    def _work(self, now: float) -> list[Package]:
        packages: list[Package] = []
        if now >= self._beat_at:
            self._beat(now)
            if self.watch.code_is_back(self.codes()):
                self._goes_back, self.roster.look_at = True, now
        if self.ward.collect():
            self.watch.tell_death()
        if now >= min(self.roster.look_at, self._isolated_at):
            packages += self._look(now)
        if now >= self.agenda.next_at:
            packages += self._chores(now, room=self.room_size - self.room.qsize() - len(packages))
        if now >= self._tasks_at:
            packages += self._claim_tasks(now, room=self.room_size - self.room.qsize() - len(packages))
        return packages

    def _look(self, now: float) -> list[Package]:
        look = self.watch.look(
            workflows=list(self.workflows()),
            limits=self.limits(),
            places=self.places.count,
            patience=self.roster.patience,
        )
        if look.has_tasks:
            self._tasks_at = min(self._tasks_at, now)
        self._isolated_at = NEVER
        if look.isolated:
            self.ward.open(now, look.isolated)
            self._isolated_at = now + WARD_SECONDS
        elif now < self._death_at + WARD_SECONDS:
            self._isolated_at = now + WARD_SECONDS / 10  # what the dead one held is being taken back
        due, self._goes_back = look.due + self._goes_back, False
        return [(None, self.make_shift(place)) for place in self.roster.fill(due, look.next_in, now)]

    def _chores(self, now: float, *, room: int) -> list[Package]:
        if room <= 0:
            self.agenda.put_off(now)
            return []
        chore = self.agenda.take(now)
        # What has been taken may not be the only one that is due.
        self._beat_at = min(self._beat_at, now + AGAIN_SECONDS)
        return [(None, self.make_chore(chore))]

    def _claim_tasks(self, now: float, *, room: int) -> list[Package]:
        """Take no more than fits: what is claimed and not begun is lost for `retry` seconds if killed."""
        if room <= 0:
            self._pause = min(max(self._pause * 2, FIRST_PAUSE), LONGEST_PAUSE)
            self._tasks_at = now + self._pause
            return []
        tasks = self.watch.claim_tasks(limit=room, retry=self.retry)
        self._pause = 0.0
        self._tasks_at = now if len(tasks) == room else NEVER
        return [(key, payload) for key, payload in tasks if self.is_sound(payload)]

    def _beat(self, now: float) -> None:
        slots = self.slots * self.places.count
        next_in = self.watch.beat(
            seat=self.seat,
            name=self.name,
            workflows=sorted(self.workflows()),
            slots=slots,
            is_default=self.agenda.is_default,
        )
        self._beat_at = now + BEAT_SECONDS
        self.agenda.plan(next_in, now)

    def _leave(self) -> None:
        # Not worth opening a connection for: a row that is left behind goes by itself.
        with suppress(psycopg.Error):
            self.watch.leave(seat=self.seat)
        self.watch.close()
        self.ward.wait()
        # The sentinel lets django-q's loop end in a moment; until then it comes here again.
        time.sleep(0.01)
