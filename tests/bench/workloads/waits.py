"""Waiting: inside bodies, side by side, and between steps, until a time."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench import driver, marks
from tests.bench.figures import Figure, percentile
from tests.bench.ground import Ground
from tests.bench.sizes import Sizes


def in_bodies(ground: Ground, sizes: Sizes) -> Iterator[Figure]:
    ground.wake_cluster()
    seconds = driver.run("io", driver.names(sizes.waits), secs=sizes.wait_seconds)
    what = f"{sizes.waits} async bodies of {sizes.wait_seconds:g} s"
    yield Figure("W5", what, seconds, "s")


def lateness(ground: Ground, sizes: Sizes) -> Iterator[Figure]:
    ground.wake_cluster()
    ids = driver.names(sizes.naps)
    with marks.Marks() as log:
        driver.start("nap", ids, secs=sizes.nap_seconds)
        log.wait(marks.WAKES, len(ids), seconds=driver.PATIENCE)
        slept, woke = log.first(marks.NAPS), log.first(marks.WAKES)
    late = [(woke[one] - slept[one]) / 1e6 - sizes.nap_seconds * 1000 for one in ids]
    for percent in (50, 99):
        what = f"{sizes.naps} sleeps of {sizes.nap_seconds:g} s, late p{percent}"
        yield Figure("W6", what, percentile(late, percent), "ms")
