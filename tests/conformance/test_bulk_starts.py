"""Bulk jobs that start instances: each once, at a pace, and nothing if one of them is not valid."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from engine import (
    BulkJobExistsError,
    InstanceExistsError,
    InvalidNameError,
    InvalidParamsError,
    LimitError,
    WorkflowStep,
    bulk,
    workflow,
    workflows,
)
from engine.jobs import batch
from engine.jobs.batch import Batch
from engine.models import Audit, BulkItem, BulkJob, Instance
from engine.steer import launch
from engine.steer.clock import database_time
from tests.conformance.test_bulk import in_a_batch, pausing, run
from tests.stories import run_to_end, wait_until

pytestmark = pytest.mark.usefixtures("nothing_is_violated")


class Order(BaseModel):
    number: int
    key: SecretStr | None = None


@pytest.fixture
def order() -> Any:
    @workflow("bulk-new-order")
    async def order(step: WorkflowStep, params: Order) -> int:
        async def charge() -> int:
            if params.number < 0:
                raise ValueError("There is no such order.")
            return params.number

        return await step.do("charge", charge, max_attempts=1)

    return order


def numbered(*numbers: int) -> list[Any]:
    return [{"params": {"number": number}} for number in numbers]


def statuses() -> list[str]:
    return [one.status for one in Instance.objects.of_users().order_by("key")]


def test_each_item_is_started_once_with_all_that_it_says(order: Any) -> None:
    at = database_time() + timedelta(hours=2)
    items: list[Any] = [
        {"params": {"number": 1}, "id": "o-1", "tags": ["eu"], "at": at, "retention": {"complete": "1h"}},
        {"params": {"number": 2}},
    ]
    job = bulk.start_many(order, items, by="ana", reason="The list of Monday.", id="monday")
    assert (job.action, job.total, job.left, job.query) == ("start", 2, 2, "")
    assert not Instance.objects.of_users().exists()

    done = run(job)
    assert (done.status, done.done, done.left) == ("complete", 2, 0)
    second, first = Instance.objects.of_users().order_by("id")
    assert (first.id, first.params, first.tags, first.starts_at) == (
        "o-1",
        {"number": 1, "key": None},
        ["eu"],
        at,
    )
    assert first.retention is not None
    assert first.retention["complete"] == 3600.0
    assert (second.params["number"], second.starts_at) == (2, None)
    assert {one.started_by for one in (first, second)} == {"ana"}
    told = Audit.objects.filter(verb="start", workflow=order.name)
    assert [(one.actor, one.reason) for one in told] == [("ana", "The list of Monday.")] * 2
    items_then = BulkItem.objects.order_by("position")
    assert [(one.instance_key, one.new) for one in items_then] == [(first.key, None), (second.key, None)]
    with pytest.raises(BulkJobExistsError):
        bulk.start_many(order, items, id="monday")


def test_an_id_that_is_taken_when_its_turn_comes_is_skipped(order: Any) -> None:
    job = bulk.start_many(order, [{"params": {"number": n}, "id": f"o-{n}"} for n in range(3)])
    taken = order.start({"number": 7}, id="o-1")
    done = run(job)
    assert (done.done, done.skipped) == (2, 1)
    (skipped,) = bulk.items(job.id, outcome="skipped")
    assert (skipped.id, skipped.code) == ("o-1", "id_in_use")
    assert Instance.objects.get(id="o-1").key == taken.key


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ({"params": {"number": "x"}}, InvalidParamsError),
        ({"params": {"number": 1}, "id": "no id"}, InvalidNameError),
        ({"params": {"number": 1}, "id": "o-0"}, InstanceExistsError),
    ],
)
def test_one_that_is_not_valid_is_named_and_nothing_is_written(
    order: Any, item: Any, error: type[Exception]
) -> None:
    with pytest.raises(error) as raised:
        bulk.start_many(order, [{"params": {"number": 0}, "id": "o-0"}, item])
    assert raised.value.__notes__ == ["items[1]"]
    assert not BulkJob.objects.exists()
    assert not BulkItem.objects.exists()


def test_there_is_a_limit(order: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "MAX_BATCH", 2)
    with pytest.raises(LimitError, match="number of items"):
        bulk.start_many(order, ({"params": {"number": n}} for n in range(1_000_000)))
    assert not BulkJob.objects.exists()


def test_all_params_together_have_a_limit(order: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "MAX_BATCH_BYTES", 30)
    with pytest.raises(LimitError, match="size of all params"):
        bulk.start_many(order, numbered(1, 2))
    assert not BulkJob.objects.exists()


def test_so_many_run_at_a_time(order: Any) -> None:
    job = bulk.start_many(order, numbered(1, 2, 3), at_once=2)
    assert in_a_batch(job) == Batch(is_last=False)
    assert in_a_batch(job) == Batch(is_last=False, is_idle=True)  # both are under way
    assert statuses() == ["queued"] * 2
    run_to_end(Instance.objects.of_users().latest("key"))
    assert run(job).done == 3
    wait_until(lambda: statuses() == ["complete"] * 3)


def test_those_that_start_later_hold_up_nothing(order: Any) -> None:
    later = database_time() + timedelta(hours=2)
    items: list[Any] = [{"params": {"number": n}, "at": later} for n in range(3)]
    job = bulk.start_many(order, [*items, *numbered(4)], at_once=1)
    assert [in_a_batch(job).is_idle for _ in range(4)] == [False] * 4
    assert bulk.get(job.id).done == 4


def test_it_pauses_when_what_it_started_has_failed(order: Any) -> None:
    job = pausing(bulk.start_many(order, numbered(-1, 1, -2, 2), at_once=1, stop_after=2))
    assert (job.done, job.failed, job.left) == (1, 2, 1)
    assert job.pause_reason == "2 new failures. Resume the job to go on."
    failed = bulk.items(job.id, outcome="failed")
    assert [(one.position, one.code, one.message) for one in failed] == [
        (1, "has_failed", "It was started and has failed."),
        (3, "has_failed", "It was started and has failed."),
    ]
    assert bulk.retry_failed(job.id).failed == 2  # they exist, so nothing is to be started
    bulk.resume(job.id)
    assert run(job).done == 2
    assert Instance.objects.of_users().count() == 4


def test_an_aborted_one_starts_no_more(order: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SIZE", 2)
    job = bulk.start_many(order, numbered(1, 2, 3))
    in_a_batch(job)
    assert bulk.abort(job.id).status == "aborted"
    wait_until(lambda: statuses() == ["complete"] * 2)


def test_what_a_worker_does_not_know_fails_and_is_started_by_another(
    order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = bulk.start_many(order, numbered(1))
    with monkeypatch.context() as without:
        without.delitem(workflows._workflows, order.name)
        assert in_a_batch(job) == Batch(is_last=True)
    (failed,) = bulk.items(job.id)
    assert (failed.outcome, failed.code) == ("failed", "unknown_workflow")
    bulk.retry_failed(job.id)
    assert run(job).done == 1


def test_secrets_are_kept_as_the_instance_will_have_them(order: Any) -> None:
    job = bulk.start_many(order, [{"params": {"number": 1, "key": "sk-4711"}}])
    kept = BulkItem.objects.get().new
    assert kept is not None
    assert "sk-4711" not in kept
    run(job)
    assert Instance.objects.of_users().get().refresh().status == "complete"
