"""What instances that sleep cost the workers."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tests.bench import driver, machine
from tests.bench.figures import Figure
from tests.bench.ground import Ground
from tests.bench.sizes import Sizes


def of_sleepers(ground: Ground, sizes: Sizes) -> Iterator[Figure]:
    ground.wake_cluster()
    driver.run("chain", driver.names(sizes.sleepers // 20 + 1), n=3, size=0, ms=0, marks="ends")
    time.sleep(sizes.settle_seconds)
    before = machine.memory_kb(ground.workers())
    ids = driver.names(sizes.sleepers)
    driver.start("nap", ids, secs=3600)
    driver.wait_for(ids, "waiting")
    time.sleep(sizes.settle_seconds)
    after = machine.memory_kb(ground.workers())
    driver.clear()
    yield Figure("W8", "memory of the workers before", before / 1024, "MB")
    yield Figure("W8", f"with {sizes.sleepers:,} instances asleep", after / 1024, "MB")
    yield Figure("W8", "for each of them", (after - before) / sizes.sleepers, "KB")
