"""What instances that sleep cost the workers, and what a burst leaves behind."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tests.bench import driver, machine
from tests.bench.figures import Figure
from tests.bench.ground import Ground
from tests.bench.sizes import Sizes

FORKED = 7  # processes that the cluster consists of


def of_sleepers(ground: Ground, sizes: Sizes) -> Iterator[Figure]:
    """Compare with a cluster that has not run anything: what work warms up counts as well."""
    driver.clear()
    idle = _fresh(ground, sizes)
    yield Figure("W8", "memory of workers that have run nothing", idle / 1024, "MB")
    asleep = 0
    for count in sizes.sleepers:
        ids = driver.names(count - asleep)
        driver.start("nap", ids, secs=3600)
        driver.wait_for(ids, "waiting")
        time.sleep(sizes.settle_seconds)
        asleep, now = count, machine.memory_kb(ground.workers())
        yield Figure("W8", f"with {asleep:,} instances asleep", now / 1024, "MB")
        yield Figure("W8", f"for each of {asleep:,}", (now - idle) / asleep, "KB")
    driver.clear()
    driver.run("chain", driver.names(sizes.loaded), n=10, size=100 * 1024, ms=0, marks="ends")
    time.sleep(sizes.settle_seconds)
    now = machine.memory_kb(ground.workers())
    what = f"after {sizes.loaded} instances of 10 outputs of 100 KB"
    yield Figure("W8", what, now / 1024, "MB")
    driver.clear()


def _fresh(ground: Ground, sizes: Sizes) -> int:
    """Start a cluster; return what it has in memory once all its processes are there."""
    ground.kill_cluster()
    ground.start_cluster()
    ends_at = time.monotonic() + driver.PATIENCE
    while len(ground.workers()) < FORKED:
        if time.monotonic() > ends_at:
            raise TimeoutError("no cluster")
        time.sleep(0.05)
    time.sleep(sizes.settle_seconds)
    return machine.memory_kb(ground.workers())
