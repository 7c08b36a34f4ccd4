"""A long history is replayed by a worker that has never seen it."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench import driver, marks
from tests.bench.figures import Figure
from tests.bench.ground import Ground
from tests.bench.sizes import Sizes


def history(ground: Ground, sizes: Sizes) -> Iterator[Figure]:
    """From the event to the body that follows it."""
    ground.wake_cluster()
    (one,) = ids = driver.names(1)
    driver.start("history", ids, n=sizes.history)
    driver.wait_for(ids, "waiting")
    ground.replace_cluster()
    with marks.Marks() as log:
        marks.mark(marks.CALLED, one)
        driver.workflow("history").get(one).send_event("go")
        log.wait(marks.RESUMES, 1, seconds=driver.PATIENCE)
        seconds = (log.first(marks.RESUMES)[one] - log.first(marks.CALLED)[one]) / 1e9
    yield Figure("replay", f"{sizes.history:,} recorded steps", seconds, "s")
