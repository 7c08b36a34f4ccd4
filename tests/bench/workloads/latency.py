"""How long a call takes to become a running body, with the workers awake."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence

from tests.bench import driver, marks
from tests.bench.figures import Beside, Figure, percentile
from tests.bench.ground import Ground
from tests.bench.sizes import Sizes


def of_starts(ground: Ground, sizes: Sizes) -> Iterator[Figure]:
    ground.wake_cluster()
    chain = driver.workflow("chain")

    def call(one: str) -> None:
        chain.start({"inst": one, "n": 1, "size": 0, "ms": 0, "marks": "all"}, id=one)

    found = late(driver.names(sizes.calls), call, marks.BODY, sizes.pause)
    yield from _figures("W3", "start() to the first body", found)


def of_events(ground: Ground, sizes: Sizes) -> Iterator[Figure]:
    ground.wake_cluster()
    ids = driver.names(sizes.calls)
    driver.start("event", ids)
    driver.wait_for(ids, "waiting")
    event = driver.workflow("event")
    found = late(ids, lambda one: event.get(one).send_event("go", {"go": 1}), marks.RESUMES, sizes.pause)
    yield from _figures("W4", "send_event() to the next body", found)


def late(ids: Sequence[str], call: Callable[[str], object], kind: str, pause: float) -> list[float]:
    """Call for one after the other; return how many milliseconds later each had its mark."""
    chance = random.Random(7)
    with marks.Marks() as log:
        for number, one in enumerate(ids):
            marks.mark(marks.CALLED, one)
            call(one)
            log.wait(kind, number + 1, seconds=driver.PATIENCE)
            time.sleep(pause * (0.2 + 0.8 * chance.random()))  # not in step with anything
        called, begun = log.first(marks.CALLED), log.first(kind)
    return [(begun[one] - called[one]) / 1e6 for one in ids]


def _figures(workload: str, what: str, found: Sequence[float]) -> Iterator[Figure]:
    for percent in (50, 99):
        yield Figure(workload, f"{what}, p{percent}", percentile(found, percent), "ms", Beside.ONE_COMMIT)
