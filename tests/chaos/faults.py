"""What was done to the system, for the verdict: each fault with its time, its victims and whether it worked."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Fault:
    """`at` to `until` is when it lasted, on the monotonic clock; `pids` are the processes that it took or stopped."""

    kind: str
    at: float
    until: float = 0.0
    machine: str = ""
    pids: list[int] = field(default_factory=list)
    is_real: bool = True
    notes: dict[str, Any] = field(default_factory=dict)
    # Bodies that ran at that moment, in all and in the processes that it took: the ledger tells, afterwards.
    in_flight: int = 0
    hit: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


# While one of these lasts, and for a moment after, the database or the way to it is not there for everybody.
OUTAGES = (
    "database immediate",
    "database fast",
    "backend crash",
    "backends cut",
    "connections exhausted",
    "black hole",
)
DOWNTIMES = ("database immediate", "database fast", "backend crash")
KILLED = (
    "worker in a body",
    "idle worker",
    "pusher",
    "monitor",
    "sentinel",
    "main",
    "quarantine",
    "web",
    "machine",
)
