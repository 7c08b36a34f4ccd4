"""Which leases of living owners are over, as this process has watched them.

A lease ends at a time of the database's clock, and clocks are set: an hour forward, all leases end at once. So the time
alone ends none while the session of its owner lives. The owner must also be silent: for a while, on a clock that nobody
sets, it has renewed and claimed nothing. And the row must have been free: while a sender's transaction holds it, nobody
can renew it; when that ends, its owner does so at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SILENT_PARTS = (
    4  # parts of a lease, of which one without a beat makes an owner silent: more than it waits between two
)
FREE_PARTS = (
    15  # of which one passes before a row that was locked is taken: many beats of an owner that waits for it
)
MIN_FREE_SECONDS = 0.3


@dataclass(slots=True)
class _Seen:
    """What was read, and when for the first time."""

    wake_us: int
    at: float


class Leases:
    """Compares what is held with what was held at earlier looks. Times are seconds of a clock that nobody sets."""

    def __init__(self, lease_seconds: float) -> None:
        self._lease = lease_seconds
        self._beats: dict[int, _Seen] = {}  # by owner: its latest lease
        self._free: dict[
            int, _Seen
        ] = {}  # by instance, of silent owners: its lease, seen while nobody had locked it
        self._owner_of: dict[int, int] = {}
        self._clock: tuple[int, float] | None = None

    def see_clock(self, database_us: int, now: float) -> bool:
        """Take in the database's time; tell whether it may have been set back since the last look."""
        before, self._clock = self._clock, (database_us, now)
        if before is None:
            return True
        return database_us - before[0] < (now - before[1] - 1) * 1_000_000

    def see_beats(self, latest: Iterable[tuple[int, int]], now: float) -> list[int]:
        """Take in the latest lease of each owner; return the owners that are silent."""
        self._beats = {owner: _seen(self._beats.get(owner), wake_us, now) for owner, wake_us in latest}
        silent = [owner for owner in self._beats if self._silence(owner, now) >= self._lease / SILENT_PARTS]
        self._free = {key: one for key, one in self._free.items() if self._owner_of[key] in silent}
        return silent

    def see_free(self, rows: Iterable[tuple[int, int, int]], now: float) -> None:
        """Take in what silent owners hold and nobody has locked, as instance, owner and lease."""
        found = list(rows)
        self._owner_of = {key: owner for key, owner, _ in found}
        self._free = {key: _seen(self._free.get(key), wake_us, now) for key, _, wake_us in found}

    def over(self, now: float) -> list[dict[str, object]]:
        """Return what may be taken from owners that live: key, lease, and whether its time does not matter any more."""
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
