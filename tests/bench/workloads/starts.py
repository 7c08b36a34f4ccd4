"""How fast one caller starts instances."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from tests.bench import driver
from tests.bench.figures import Beside, Figure
from tests.bench.ground import Ground
from tests.bench.sizes import Sizes

PARAMS = {"n": 1, "size": 0, "ms": 0, "marks": "ends"}


def rates(ground: Ground, sizes: Sizes) -> Iterator[Figure]:
    """First with nobody at work, which is what the calls cost; then with the workers at what was started."""
    ground.kill_cluster()
    yield from _rates(sizes, "no workers")
    driver.clear()
    ground.wake_cluster()
    yield from _rates(sizes, "workers at it")


def _rates(sizes: Sizes, when: str) -> Iterator[Figure]:
    for what, call, count in (
        ("start()", _one_by_one, sizes.starts),
        ("start_many()", _together, sizes.starts_many),
    ):
        ids = driver.names(count)
        began = time.monotonic()
        call(ids)
        rate = count / (time.monotonic() - began)
        yield Figure("starts", f"{what} of {count:,}, {when}", rate, "instances/s", Beside.ONE_CLIENT)
        if when != "no workers":
            driver.wait_for(ids, "complete")


def _one_by_one(ids: Sequence[str]) -> None:
    chain = driver.workflow("chain")
    for one in ids:
        chain.start({"inst": one, **PARAMS}, id=one)


def _together(ids: Sequence[str]) -> None:
    driver.start("chain", ids, **PARAMS)
