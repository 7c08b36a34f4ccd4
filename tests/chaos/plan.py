"""What a run does when: its size, its load and its faults, all from one seed. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any

# Ten minutes, of which seven are under load and faults.
WHOLE_MINUTES = 10.0
LOAD_PART = 0.7
RATE = 12.0
LONGEST_SLEEP = 20.0
KILL_EVERY = 2.0
STOP_EVERY = 20.0
LEASE = 8.0
DRAIN_LIMIT = 120.0

KILLS = {
    "worker in a body": 60,
    "idle worker": 10,
    "pusher": 4,
    "monitor": 4,
    "sentinel": 10,
    "main": 7,
    "quarantine": 5,
}

# Share of the load at which something happens.
AT = {
    "database immediate": (0.18, 0.46, 0.75),
    "database fast": (0.36,),
    "backend crash": (0.9,),
    "web": (0.11, 0.39, 0.68, 0.96),
    "machine": (0.27, 0.83),
    "idle in transaction": (0.05,),
    "connections exhausted": (0.32,),
    "black hole": (0.55,),
    "backends cut": (0.62,),
}
# How long it lasts, as a share of the load, where it lasts.
LASTING = {
    "idle in transaction": 0.25,
    "connections exhausted": 0.06,
    "black hole": 0.05,
    "backends cut": 0.05,
}
# In a minute there is room for this much.
AT_IN_SHORT = {"database immediate": (0.4,), "web": (0.2,)}
STOPS_IN_SHORT = (0.05, 0.5)
SHORT = 100.0  # seconds of load
RATE_IN_SHORT = 7.2


@dataclass(frozen=True)
class Due:
    """A fault, so many seconds after the load began."""

    at: float
    kind: str
    seconds: float = 0.0


@dataclass(frozen=True)
class Plan:
    """`load` is how long starts and faults come, in seconds; `rate` is starts a second."""

    seed: int
    minutes: float
    load: float
    rate: float
    instances: int
    longest: float
    kill_every: float = KILL_EVERY
    lease: float = LEASE

    @classmethod
    def of(cls, seed: int, minutes: float) -> Plan:
        load = minutes * 60 * LOAD_PART
        rate = RATE_IN_SHORT if load < SHORT else RATE
        return cls(seed, minutes, load, rate, round(load * rate), min(LONGEST_SLEEP, load / 8))

    @property
    def is_short(self) -> bool:
        return self.load < SHORT

    def at_rate(self, rate: float) -> Plan:
        """Return the plan with fewer starts a second."""
        return replace(self, rate=rate, instances=round(self.load * rate))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def faults(self) -> list[Due]:
        """Return all faults in the order of their time."""
        return sorted([*self._kills(), *self._stops(), *self._others()], key=lambda due: due.at)

    def _kills(self) -> list[Due]:
        rng = Random(f"{self.seed} kills")
        count = int(self.load / self.kill_every) - 1
        return [Due((turn + 1) * self.kill_every, kind) for turn, kind in enumerate(_deck(rng, count))]

    def _stops(self) -> list[Due]:
        """A worker is stopped for longer than its lease, and wakes up as a zombie."""
        turns = int((self.load - self.lease) / STOP_EVERY)
        moments = [(turn + 0.5) * STOP_EVERY for turn in range(turns)]
        if self.is_short:
            moments = [self.load * at for at in STOPS_IN_SHORT]
        return [Due(at, "zombie", self.lease + 3) for at in moments]

    def _others(self) -> list[Due]:
        chosen = AT_IN_SHORT if self.is_short else AT
        return [
            Due(
                self.load * at, kind, max(self.load * LASTING[kind], self.lease + 2) if kind in LASTING else 0
            )
            for kind, moments in chosen.items()
            for at in moments
        ]


def _deck(rng: Random, count: int) -> list[str]:
    """Return so many kinds of kills in the given shares, each at least once, shuffled."""
    total = sum(KILLS.values())
    deck = [kind for kind, share in KILLS.items() for _ in range(max(1, round(count * share / total)))]
    rng.shuffle(deck)
    filler = ["worker in a body"] * max(0, count - len(deck))
    return (deck + filler)[:count]
