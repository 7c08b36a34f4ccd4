"""People who pause, resume, wake, terminate and restart all the time, over bodies that go on when they are cancelled.

One or two workers hold the instances, and the database's answers come late. So an instance is often taken again by a
worker in which a body of its last generation still runs, or an answer about its last stay is still on its way.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from engine import (
    InstanceFinishedError,
    InstancePausedError,
    NothingToRetryError,
    NothingToWakeError,
    StepNotFoundError,
)
from engine.models import Attempt, Audit, Instance
from studio.embedded import socket_dir
from tests.faults.proxy import Proxy
from tests.process.arena import PATIENCE, Arena
from tests.process.program.workflows import (
    Family,
    Op,
    block,
    family,
    flaky,
    nest,
    program,
    sell,
    sleep,
    stubborn,
    together,
)
from tests.shop import open_shop

pytestmark = [pytest.mark.process, pytest.mark.second_tier]

STORMS = int(os.environ.get("REPRISE_TEST_STORMS", "2"))
SECONDS = 4.0
SET = 4  # instances of each kind
PROGRAMS: list[list[Op]] = [
    [block("a", 0.3), sleep("nap", 0.15), block("b", 0.2)],
    [stubborn("a", 0.3), stubborn("b", 0.2), sleep("nap", 0.15)],
    [nest("a", block("inner", 0.2), stubborn("inner", 0.2)), together(stubborn("b", 0.3), sleep("nap", 0.1))],
    [flaky("a", 0.15), together(flaky("b", 0.1), stubborn("c", 0.3))],
    [sell("a", 0.2), sell("b", 0.1)],
]
CHILD = [stubborn("a", 0.2), block("b", 0.2)]
VERBS = ("pause", "pause", "resume", "resume", "terminate", "restart", "restart", "restart from a step")
VERBS += ("retry_now", "wake_now")
REFUSALS = (
    InstanceFinishedError,
    InstancePausedError,
    NothingToRetryError,
    NothingToWakeError,
    StepNotFoundError,
)


@pytest.fixture
def proxy(arena: Arena) -> Iterator[Proxy]:
    with tempfile.TemporaryDirectory(prefix="proxy-") as directory, open_shop():
        proxy = Proxy(socket_dir(arena.home), Path(directory)).start()
        try:
            yield proxy
        finally:
            arena.end_all()
            proxy.stop()


@pytest.mark.parametrize("seed", range(1, STORMS + 1))
def test_no_instance_hangs_however_it_is_steered(arena: Arena, proxy: Proxy, seed: int) -> None:
    """Guarantees 12 to 14 and 17"""
    rng = random.Random(seed)
    chance = random.Random(seed)
    proxy.lateness = lambda: chance.uniform(0.0, 0.03) if chance.random() < 0.4 else 0.0
    for name in ("first", "second")[: 2 - seed % 2]:
        arena.start("proxied_worker", directory=str(proxy.directory), application=name, name=name)
    instances = [program.start(ops) for _ in range(SET) for ops in PROGRAMS]
    instances += [family.start(Family("gather", 2, CHILD)) for _ in range(SET)]

    ends_at = time.monotonic() + SECONDS
    while time.monotonic() < ends_at:
        steer(rng.choice(instances), rng.choice(VERBS))
        time.sleep(rng.uniform(0.0, 0.05))
    left = instances
    ends_at = time.monotonic() + PATIENCE
    while left := incomplete(left):
        assert time.monotonic() < ends_at, [f"{one} is {one.status}" for one in left]
        time.sleep(0.05)

    assert not Attempt.objects.filter(status="lost").exists(), "nobody died"
    begun = Counter((line.key, line.attempt) for line in arena.ledger.lines(what="start"))
    assert set(begun.values()) == {1}
    assert {"pause", "resume", "terminate", "restart"} <= set(Audit.objects.values_list("verb", flat=True))


def steer(instance: Instance, verb: str) -> None:
    with suppress(*REFUSALS):
        if verb == "restart from a step":
            instance.restart("a")
        else:
            getattr(instance, verb)()


def incomplete(instances: list[Instance]) -> list[Instance]:
    """Return those that are not complete; what somebody has stopped is told to go on."""
    left = [one for one in instances if one.refresh().status != "complete"]
    for one in left:
        if one.status in ("paused", "waiting_for_pause"):
            one.resume()
        elif one.is_finished:
            one.restart()
    return left
