"""A connection that swallows what is sent, both ways, and never breaks: as behind a firewall that forgot it."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import psycopg
import pytest

from engine import StepContext, WorkflowStep, workflow
from engine.declare.registry import Workflow
from engine.models import Instance
from engine.worker import claims
from engine.worker.cluster import broker_connection
from engine.worker.cluster.process_locks import Flag
from engine.worker.database import worker_lock
from tests.faults.conftest import CALLER
from tests.faults.points import DROPS, Breaker, Watcher, violations
from tests.faults.proxy import Fault, Proxy
from tests.records import outcomes
from tests.shifts import running_shift, wait_for, wait_until

pytestmark = pytest.mark.second_tier

LEASE = 1.5
LONG_LEASE = 3.0  # a beat that is late must still come in time on a busy machine
GRACE = 30.0  # for all the rest, on a busy machine; nothing else would bring it to an end

started = threading.Event()
let_out = threading.Event()


@pytest.fixture(autouse=True)
def story(proxy: Proxy, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Workflow[Any, Any]:
    settings.REPRISE = settings.REPRISE | {"LEASE": LEASE}
    monkeypatch.setattr(worker_lock, "_taken_here", set())
    monkeypatch.setattr(claims, "SWEEP_SECONDS", 0.3)
    started.clear()
    let_out.clear()

    @workflow
    async def story(step: WorkflowStep) -> int:
        attempt = await step.do("body", body)
        for number in range(3):
            await step.do(f"step {number}", str)
        return attempt

    return story


async def body(ctx: StepContext) -> int:
    started.set()
    while not let_out.is_set():
        await asyncio.sleep(0.005)
    return ctx.attempt


def begin(story: Workflow[Any, Any]) -> Instance:
    instance = story.start()
    assert started.wait(60)
    return instance


@pytest.mark.parametrize("connection", ["lock", "claims", "journal", ""], ids=lambda name: name or "all")
def test_worker_whose_connection_swallows_everything_takes_a_new_one(
    proxy: Proxy, story: Workflow[Any, Any], connection: str
) -> None:
    with running_shift():
        instance = begin(story)
        proxy.hold(connection)
        let_out.set()
        late = story.start()
        # It waits for the length of a lease, and for the lease of a worker that the server still believes in.
        for one in (instance, late):
            wait_for(one, "complete", seconds=3 * LEASE + GRACE)
        # Who only listens waits for nothing, so it has to ask. The proxy keeps the old connection.
        application = f"reprise {connection or 'lock'} test"
        wait_until(
            lambda: proxy.sessions().count(application) == 2,
            seconds=2 * LEASE + GRACE,
            what="another connection",
        )
    assert outcomes(instance, "body")[-1] == "complete"
    assert violations() == []


def test_heart_whose_connection_swallows_everything_renews_the_lease_in_time(
    proxy: Proxy, story: Workflow[Any, Any], settings: Any
) -> None:
    settings.REPRISE = settings.REPRISE | {"LEASE": LONG_LEASE}
    watcher = proxy.decide = Watcher(CALLER)
    with running_shift():
        instance = begin(story)
        wait_until(lambda: "RENEW" in watcher.seen, what="a heartbeat")
        proxy.hold(CALLER)
        beats = watcher.seen.count("RENEW")
        time.sleep(2 * LONG_LEASE)  # the database's clock cannot be read
        let_out.set()
        wait_for(instance, "complete")
    assert outcomes(instance, "body") == ["complete"]
    assert watcher.seen.count("RENEW") > beats + 1


@pytest.mark.parametrize("fault", DROPS)
@pytest.mark.parametrize(("statement", "number"), [("connect", 1), ("RENEW", 1), ("RENEW", 2)])
def test_heart_whose_connection_breaks_beats_on(
    proxy: Proxy, story: Workflow[Any, Any], statement: str, number: int, fault: Fault
) -> None:
    breaker = proxy.decide = Breaker((CALLER, statement, number), fault)
    with running_shift():
        instance = begin(story)
        wait_until(lambda: breaker.is_hit and breaker.seen[CALLER, "RENEW"] > number + 2, what="more beats")
        let_out.set()
        wait_for(instance, "complete")
    assert outcomes(instance, "body") == ["complete"]


def test_others_take_over_within_the_lease(proxy: Proxy, story: Workflow[Any, Any]) -> None:
    with running_shift(name="lost"):
        instance = begin(story)
        held_at = time.monotonic()
        proxy.hold("lost")
        proxy.hold(CALLER)
        with running_shift(name="other"):
            started.clear()
            assert started.wait(LEASE + GRACE)
            assert time.monotonic() - held_at > LEASE / 2, "it was not lost: the test proves nothing"
            let_out.set()
            wait_for(instance, "complete")
    assert outcomes(instance, "body") == ["lost", "complete"]
    assert violations() == []


def test_broker_whose_connection_swallows_everything_opens_another(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_connection, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(broker_connection, "FIRST_PAUSE", 0.0)
    broker = broker_connection.BrokerConnection(alias="default", key="any", stop=Flag())
    try:
        assert broker.open()
        assert broker.quarantined(workflows=["story"], limits={}) == 0
        proxy.hold("reprise-broker")
        with pytest.raises(psycopg.OperationalError, match=r"no answer for 0\.5 s") as raised:
            broker.quarantined(workflows=["story"], limits={})
        broker.lose(raised.value)
        assert broker.open()
        assert broker.quarantined(workflows=["story"], limits={}) == 0
    finally:
        broker.close()
