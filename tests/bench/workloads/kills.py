"""Every process of the cluster is killed at once, and the cluster started again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

from tests.bench import driver, marks
from tests.bench.figures import Figure
from tests.bench.ground import Ground
from tests.bench.sizes import Sizes


def recovery(ground: Ground, sizes: Sizes) -> Iterator[Figure]:
    """From the kill, when half of the bodies have begun, to the last completion."""
    ground.wake_cluster()
    ids = driver.names(sizes.killed)
    with marks.Marks() as log:
        driver.start("chain", ids, n=sizes.killed_links, size=0, ms=sizes.killed_ms, marks="all")
        log.wait(marks.BODY, sizes.killed * sizes.killed_links // 2, seconds=driver.PATIENCE)
        killed_at = time.monotonic()
        ground.kill_cluster()
        ground.start_cluster()
        driver.wait_for(ids, "complete")
        seconds = time.monotonic() - killed_at
        bodies = Counter((one.inst, one.step) for one in log.of(marks.BODY))
    assert len(bodies) == sizes.killed * sizes.killed_links
    yield Figure("W7", f"kill to all of {sizes.killed} instances done", seconds, "s")
    yield Figure("W7", "bodies run twice", sum(count > 1 for count in bodies.values()), "")
