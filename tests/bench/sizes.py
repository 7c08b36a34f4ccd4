"""How much each workload does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    pgbench: str = "-T 5"
    chains: int = 500
    chains_1k: int = 100
    chains_100k: int = 20
    links: int = 10
    sequences: tuple[int, ...] = (100, 1_000, 10_000)
    calls: int = 100  # whose latency is measured, one at a time
    pause: float = 0.12  # the longest between two of them
    waits: int = 500
    wait_seconds: float = 1.0
    naps: int = 200
    nap_seconds: float = 2.0
    killed: int = 50
    killed_links: int = 20
    killed_ms: int = 50
    sleepers: tuple[int, ...] = (2_000, 20_000)  # on top of each other
    loaded: int = 100  # with outputs of 100 KB, whose memory is returned
    settle_seconds: float = 3.0
    starts: int = 1_000
    starts_many: int = 5_000
    history: int = 10_000
    quiet_seconds: float = 20.0
    http_seconds: float = 4.0  # for which requests are sent as fast as they are answered


FULL = Sizes()

# Shows that everything works. The figures say nothing.
TINY = Sizes(
    pgbench="-t 50",
    chains=4,
    chains_1k=2,
    chains_100k=2,
    links=2,
    sequences=(2, 3, 4),
    calls=3,
    pause=0.01,
    waits=4,
    wait_seconds=0.05,
    naps=3,
    nap_seconds=0.05,
    killed=4,
    killed_links=6,
    killed_ms=50,
    sleepers=(3, 5),
    loaded=2,
    settle_seconds=0,
    starts=5,
    starts_many=10,
    history=20,
    quiet_seconds=0.2,
    http_seconds=0.2,
)
