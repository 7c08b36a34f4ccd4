"""Decide which leases of live owners have expired, from what this process has observed.

A lease ends at a time of the database's clock, and clocks are set: one hour forward, and all leases expire at once. So
the time alone ends no lease while the session of its owner lives. The owner must also be silent: for a while, on a
clock that is never set, it has renewed and claimed nothing. And the row must have been free: while a sender's
transaction locks it, its owner cannot renew it, and does so as soon as the lock is released.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SILENT_PARTS = (
    4  # of a lease; an owner without a beat for this long is silent: longer than the interval of beats
)
FREE_PARTS = 15  # of a lease; a row that was locked is taken after this: many beats of an owner that waits
MIN_FREE_SECONDS = 0.3


@dataclass(slots=True)
class _Seen:
    """What was read, and when it was first read."""

    wake_us: int
    at: float


class Leases:
    """Compares what is held with earlier observations. Times are seconds on a clock that is never set."""

    def __init__(self, lease_seconds: float) -> None:
        self._lease = lease_seconds
        self._beats: dict[int, _Seen] = {}  # by owner: its latest lease
        self._free: dict[
            int, _Seen
        ] = {}  # by instance, of silent owners: its lease, seen while nobody had locked it
        self._owner_of: dict[int, int] = {}
        self._clock: tuple[int, float] | None = None

    def see_clock(self, database_us: int, now: float) -> bool:
        """Record the database's time. Return whether it may have been set back since the last call."""
        before, self._clock = self._clock, (database_us, now)
        if before is None:
            return True
        return database_us - before[0] < (now - before[1] - 1) * 1_000_000

    def see_beats(self, latest: Iterable[tuple[int, int]], now: float) -> list[int]:
        """Record the latest lease of each owner. Return the silent owners."""
        self._beats = {owner: _seen(self._beats.get(owner), wake_us, now) for owner, wake_us in latest}
        silent = [owner for owner in self._beats if self._silence(owner, now) >= self._lease / SILENT_PARTS]
        self._free = {key: one for key, one in self._free.items() if self._owner_of[key] in silent}
        return silent

    def see_free(self, rows: Iterable[tuple[int, int, int]], now: float) -> None:
        """Record the unlocked rows that silent owners hold, as instance, owner and lease."""
        found = list(rows)
        self._owner_of = {key: owner for key, owner, _ in found}
        self._free = {key: _seen(self._free.get(key), wake_us, now) for key, _, wake_us in found}

    def over(self, now: float) -> list[dict[str, object]]:
        """Return what may be taken from live owners: key, lease, and whether its time no longer matters."""
        free_for = max(MIN_FREE_SECONDS, self._lease / FREE_PARTS)
        return [
            {
                "key": key,
                "wake_us": one.wake_us,
                "whenever": self._silence(self._owner_of[key], now) >= self._lease,
            }
            for key, one in self._free.items()
            if now - one.at >= free_for
        ]

    def _silence(self, owner: int, now: float) -> float:
        return now - self._beats[owner].at if owner in self._beats else 0.0


def _seen(before: _Seen | None, wake_us: int, now: float) -> _Seen:
    return before if before is not None and before.wake_us == wake_us else _Seen(wake_us, now)
