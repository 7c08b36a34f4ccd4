"""Which shifts a cluster misses, and when to look again. Pure: time comes in, decisions go out."""

from __future__ import annotations

# Hints may be lost, rows are not: look at them at least this often.
SWEEP_SECONDS = 5.0

# While a shift runs, due rows are its to take. Only what it leaves lying this long wants another shift.
PATIENCE_SECONDS = 0.02

# Look at most this often: under load every commit is a hint.
PAUSE_SECONDS = 0.05
IDLE_PAUSE_SECONDS = 0.01  # while no shift runs; the hints are then meant for other clusters

# A shift that was handed out and not begun by then is taken for lost; a second one for its place ends by
# itself.
PROMISE_SECONDS = 2.0


class Roster:
    """Keep the places for shifts filled while there is work, and empty while there is none."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.look_at = 0.0
        self._taken: frozenset[int] = frozenset()
        self._promised: dict[int, float] = {}
        self._looked_at = float("-inf")

    @property
    def patience(self) -> float:
        """How long a row may be due before it counts as left lying."""
        return PATIENCE_SECONDS if self._taken or self._promised else 0.0

    def count(self, taken: frozenset[int], now: float) -> None:
        """Note which places are taken. One that was left may have left work behind."""
        if self._taken - taken:
            self.look_at = now
        self._taken = taken
        self._promised = {
            place: until for place, until in self._promised.items() if place not in taken and until > now
        }

    def wake(self, now: float) -> None:
        """Note a hint that there is work."""
        if self._free():
            pause = PAUSE_SECONDS if self.patience else IDLE_PAUSE_SECONDS
            self.look_at = min(self.look_at, max(now + self.patience, self._looked_at + pause))

    def fill(self, due: int, next_in: float | None, now: float) -> list[int]:
        """Return the places to send shifts to, given how many rows are due and how soon the next will be."""
        wait = SWEEP_SECONDS if next_in is None else min(next_in, SWEEP_SECONDS)
        self.look_at = now + max(wait, PAUSE_SECONDS if self.patience else 0.0)
        self._looked_at = now
        places = self._free()[:due]
        self._promised |= dict.fromkeys(places, now + PROMISE_SECONDS)
        return places

    def _free(self) -> list[int]:
        return [
            place for place in range(self.places) if place not in self._taken and place not in self._promised
        ]
