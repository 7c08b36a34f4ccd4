"""What is measured, by name, in the order in which it is: what leaves instances behind comes last."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.bench.figures import Figure
from tests.bench.ground import Ground
from tests.bench.sizes import Sizes
from tests.bench.workloads import http, idle, kills, latency, memory, replay, starts, throughput, waits

Workload = Callable[[Ground, Sizes], Iterator[Figure]]

WORKLOADS: dict[str, Workload] = {
    "starts": starts.rates,
    "W1": throughput.chains,
    "W1k": throughput.chains_1k,
    "W1h": throughput.chains_100k,
    "W2": throughput.sequences,
    "W3": latency.of_starts,
    "W4": latency.of_events,
    "api": http.api,
    "W5": waits.in_bodies,
    "W6": waits.lateness,
    "W8": memory.of_sleepers,
    "W7": kills.recovery,
    "replay": replay.history,
    "idle": idle.quiet,
}
