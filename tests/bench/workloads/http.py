"""What the HTTP API costs, beside a bare Django view on the same server; and how soon a start by it runs."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from tests.bench import driver, marks
from tests.bench.figures import Beside, Figure, percentile
from tests.bench.ground import Ground
from tests.bench.sizes import Sizes
from tests.bench.web import Web, serving
from tests.bench.workloads.latency import late

PARAMS = {"n": 1, "size": 0, "ms": 0, "marks": "all"}
STARTS = "/api/v1/workflows/chain/instances"
SHARE = 0.7  # of what it can do at most, at which its latency is measured
ROUNDS = 3  # by turns, so that what disturbs one disturbs all


def api(ground: Ground, sizes: Sizes) -> Iterator[Figure]:
    ground.wake_cluster()
    (known,) = driver.names(1)
    driver.run("chain", [known], **PARAMS)
    with serving(ground.stack) as web:
        yield from _soon(web, sizes)
    ground.kill_cluster()  # what is started from now on stays queued
    with serving(ground.stack) as web:
        yield from _rates(web, known, sizes)


def _rates(web: Web, known: str, sizes: Sizes) -> Iterator[Figure]:
    requests = {
        "a bare view": web.get(f"/bare/{known}"),
        "reading an instance": web.get(f"{STARTS}/{known}"),
        "starting an instance": web.post(STARTS, {"params": {"inst": "-", **PARAMS}}),
    }
    rates: dict[str, list[float]] = {what: [] for what in requests}
    for _ in range(ROUNDS):
        for what, request in requests.items():
            rates[what].append(web.saturate(request, sizes.http_seconds).rate)
    bare = rates["a bare view"]
    for what, request in requests.items():
        yield Figure("api", what, median(rates[what]), "requests/s")
        share = median(one / other for one, other in zip(rates[what], bare, strict=True))
        yield Figure("api", f"{what}, of a bare view's", 100 * share, "%")
        paced = web.pace(request, sizes.http_seconds * ROUNDS, SHARE * median(rates[what]))
        yield Figure("api", f"{what} at {SHARE:.0%} of that, p99", percentile(paced.late, 99), "ms")


def _soon(web: Web, sizes: Sizes) -> Iterator[Figure]:
    """Start by turns in Python and by the API."""
    chain = driver.workflow("chain")

    def by_python(one: str) -> None:
        chain.start({"inst": one, **PARAMS}, id=one)

    with web.kept() as connection:

        def by_api(one: str) -> None:
            connection.send(web.post(STARTS, {"params": {"inst": one, **PARAMS}, "id": one}))

        for what, call in (("start()", by_python), ("a start by the API", by_api)):
            found = late(driver.names(sizes.calls), call, marks.BODY, sizes.pause)
            yield Figure("api", f"{what} to the first body, p50", median(found), "ms", Beside.ONE_COMMIT)
