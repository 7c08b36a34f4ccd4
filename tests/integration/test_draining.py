"""Draining and resuming workers: what is recorded, whom it concerns, and what people are told."""

from __future__ import annotations

import pytest

from engine import LimitError, WorkerNotFoundError, workers
from engine.models import Audit, Worker
from tests.studio import factories

CLUSTER = {"cluster": "host-1:10", "cluster_id": -10}

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _cluster() -> None:
    """Make a cluster with two workers, and one elsewhere that serves less."""
    factories.worker(["bill", "ship"], role="cluster", name="host-1:10", worker_id=-10, **CLUSTER)
    for number in (11, 12):
        factories.worker(["bill", "ship"], name=f"host-1:{number}", worker_id=number, **CLUSTER)
    factories.worker(["bill"], name="host-2:21", worker_id=21)


def drained() -> list[str]:
    rows = workers.running()
    return [row.name for row in rows if workers.drain_of(row, rows) is not None]


def test_a_drained_worker_says_who_drained_it_since_when_and_why() -> None:
    found = workers.drain("host-1:11", by="ana", reason="It swaps.")
    row = Worker.objects.get(name="host-1:11")
    assert (row.drained_by, row.drain_reason) == ("ana", "It swaps.")
    assert found.worker.drained_at == row.drained_at is not None
    assert found.warnings == ()
    assert drained() == ["host-1:11"]


def test_a_drained_cluster_drains_its_workers_and_no_others() -> None:
    workers.drain("host-1:10")
    assert drained() == ["host-1:10", "host-1:11", "host-1:12"]
    workers.resume("host-1:10")
    assert drained() == []


def test_the_answer_names_the_workflows_that_no_other_worker_serves() -> None:
    sentence = 'No other worker serves "ship". Instances wait until one does.'
    assert workers.drain("host-1:10").warnings == (sentence,)
    workers.resume("host-1:10")
    assert workers.drain("host-1:11").warnings == ()
    assert workers.drain("host-1:12").warnings == (sentence,)
    everything = 'No other worker serves "bill". Instances wait until one does.'
    assert workers.drain("host-2:21").warnings == (everything,)


def test_a_worker_that_was_not_seen_lately_serves_nothing() -> None:
    Worker.objects.filter(name="host-1:12").update(
        seen_at=factories.ago(seconds=30), started_at=factories.ago(seconds=90)
    )
    assert "host-1:12" not in [row.name for row in workers.running()]
    assert workers.drain("host-1:11").warnings == (
        'No other worker serves "ship". Instances wait until one does.',
    )


def test_a_resumed_worker_still_drains_with_its_cluster_and_the_answer_says_so() -> None:
    workers.drain("host-1:11")
    workers.drain("host-1:10")
    found = workers.resume("host-1:11")
    assert found.warnings == ("host-1:11 still drains, because its cluster does. Resume host-1:10.",)
    assert "host-1:11" in drained()
    assert workers.resume("host-1:10").warnings == ()
    assert drained() == []


def test_each_change_is_in_the_audit_trail_once() -> None:
    for _ in range(2):
        workers.drain("host-1:10", by="ana", reason="Noon.")
    for _ in range(2):
        workers.resume("host-1:10", by="ben")
    rows = Audit.objects.order_by("key").values_list("verb", "actor", "before", "after", "reason", "data")
    about = {"worker": "host-1:10", "role": "cluster"}
    assert list(rows) == [
        ("worker-drain", "ana", "active", "drained", "Noon.", about),
        ("worker-resume", "ben", "drained", "active", "", about),
    ]


def test_a_name_that_is_unknown_and_a_reason_that_is_too_long_are_refused() -> None:
    with pytest.raises(WorkerNotFoundError, match='no worker "host-3:1"') as found:
        workers.drain("host-3:1")
    assert found.value.known == ("host-1:10", "host-1:11", "host-1:12", "host-2:21")
    with pytest.raises(WorkerNotFoundError):
        workers.resume("host\0")
    with pytest.raises(LimitError):
        workers.drain("host-1:11", reason="x" * 2_001)
    assert drained() == []
    assert not Audit.objects.exists()
