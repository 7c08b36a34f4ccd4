"""What a cluster has to do by the clock, and when. Pure: time comes in, decisions go out."""

from __future__ import annotations

from enum import StrEnum

NEVER = float("inf")

# What starts a cluster is repeated now and then: the first time may have failed, and rows may be deleted.
BEGIN_AGAIN_SECONDS = 300.0

# After a look for what is due the next may be due already.
AGAIN_SECONDS = 1.0

# While every worker has something to do.
BUSY_SECONDS = 0.1

# What stays due although it was looked for so long is stuck; django-q's scheduler looks in this rhythm anyway.
STUCK_SECONDS = 10.0
LONGEST_PAUSE = 30.0

# A hint that the clock on this host and the database's differ a little must not cost a second.
MARGIN_SECONDS = 0.02


class Chore(StrEnum):
    """A function of `engine.worker.upkeep` that one of the workers runs."""

    BEGIN = "begin"
    LOOK = "look"


class Agenda:
    """Say which chore is due. Of a cluster that is to run no schedules (`scheduler: False`), none ever is."""

    def __init__(self, *, is_kept: bool, is_default: bool) -> None:
        self.is_default = is_default
        self._is_kept = is_kept
        self._begin_at = self._look_at = self._looked_at = -NEVER
        self.begin()

    @property
    def next_at(self) -> float:
        return min(self._begin_at, self._look_at)

    def begin(self) -> None:
        """Begin anew: the cluster starts, or has its database back."""
        self._begin_at = -NEVER if self._is_kept else NEVER
        self._look_at = NEVER

    def plan(self, next_in: float | None, now: float) -> None:
        """Note how soon the next Schedule is due; negative for one that has been due for so long."""
        if next_in is None or not self._is_kept:
            self._look_at = NEVER
        elif next_in < -STUCK_SECONDS:
            self._look_at = self._looked_at + LONGEST_PAUSE
        else:
            self._look_at = max(now + next_in + MARGIN_SECONDS, self._looked_at + AGAIN_SECONDS)

    def put_off(self, now: float) -> None:
        """Wait a moment with what is due: no worker would begin it."""
        later = now + BUSY_SECONDS
        self._begin_at, self._look_at = max(self._begin_at, later), max(self._look_at, later)

    def take(self, now: float) -> Chore:
        """Return the chore that is due; it is not due again."""
        if self._begin_at <= now:
            self._begin_at = now + BEGIN_AGAIN_SECONDS
            return Chore.BEGIN
        self._look_at, self._looked_at = NEVER, now
        return Chore.LOOK
