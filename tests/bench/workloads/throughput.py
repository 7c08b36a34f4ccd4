"""How fast steps follow each other."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench import driver, marks
from tests.bench.figures import Beside, Figure
from tests.bench.ground import Ground
from tests.bench.sizes import Sizes


def chains(ground: Ground, sizes: Sizes) -> Iterator[Figure]:
    yield _chains(ground, "W1", sizes.chains, sizes.links, 0)


def chains_1k(ground: Ground, sizes: Sizes) -> Iterator[Figure]:
    yield _chains(ground, "W1k", sizes.chains_1k, sizes.links, 1024)


def chains_100k(ground: Ground, sizes: Sizes) -> Iterator[Figure]:
    yield _chains(ground, "W1h", sizes.chains_100k, sizes.links, 100 * 1024)


def _chains(ground: Ground, workload: str, count: int, links: int, size: int) -> Figure:
    """From the first start to the last completion in the database."""
    ground.wake_cluster()
    seconds = driver.run("chain", driver.names(count), n=links, size=size, ms=0, marks="ends")
    outputs = f", outputs of {size // 1024} KB" if size else ""
    what = f"{count} instances of {links} steps{outputs}"
    return Figure(workload, what, count * links / seconds, "steps/s", Beside.EIGHT_CLIENTS)


def sequences(ground: Ground, sizes: Sizes) -> Iterator[Figure]:
    """From the first body to the end of the handler."""
    for count in sizes.sequences:
        ground.wake_cluster()
        with marks.Marks() as log:
            driver.run("chain", driver.names(1), n=count, size=0, ms=0, marks="ends")
            (begun,), (ended,) = log.of(marks.BODY), log.of(marks.END)
        each = (ended.ns - begun.ns) / 1e6 / count
        yield Figure("W2", f"{count:,} steps of one instance", each, "ms a step", Beside.ONE_COMMIT)
