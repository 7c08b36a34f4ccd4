"""Bulk jobs: one action on many instances, each of which is changed once or left alone with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from engine import (
    BulkJobExistsError,
    BulkJobNotFoundError,
    InstanceNotFoundError,
    InvalidNameError,
    InvalidQueryError,
    InvalidValueError,
    LimitError,
    RollbackContext,
    StepContext,
    UnknownWorkflowError,
    WorkflowStep,
    bulk,
    pauses,
    workflow,
    workflows,
)
from engine.jobs import actions, batch, removal, selection, steering
from engine.jobs.naming import named
from engine.jobs.surroundings import Surroundings, surroundings
from engine.models import Attempt, Audit, BulkItem, BulkJob, Instance, Step
from engine.steer import lifecycle
from engine.steer.clock import database_time
from engine.steer.lifecycle import lock
from engine.values.errors import DeclarationError
from tests.stories import run_to_end, wait_for, wait_until

pytestmark = pytest.mark.usefixtures("nothing_is_violated")


class Provider:
    """A service that can be down, and remembers the idempotency keys that it has seen."""

    def __init__(self) -> None:
        self.is_down = True
        self.keys: list[str] = []

    def charge(self, ctx: StepContext) -> str:
        self.keys.append(ctx.idempotency_key)
        if self.is_down:
            raise ConnectionError("The provider is down.")
        return "charged"


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
def order(provider: Provider) -> Any:
    @workflow("bulk-order")
    async def order(step: WorkflowStep) -> str:
        return await step.do("charge", provider.charge, max_attempts=1)

    return order


@pytest.fixture
def waiting() -> Any:
    @workflow("bulk-waiting")
    async def waiting(step: WorkflowStep) -> None:
        await step.listen("go")

    return waiting


def started(declared: Any, count: int) -> list[Instance]:
    return list(declared.start_many([{"id": f"i-{n}"} for n in range(count)]).created)


def ended(declared: Any, count: int) -> list[Instance]:
    found = started(declared, count)
    return [run_to_end(one).refresh() for one in found]


def worker_of(job: bulk.Job) -> Instance:
    return Instance.objects.get(workflow="reprise.bulk", id=job.id)


def run(job: bulk.Job) -> bulk.Job:
    run_to_end(worker_of(job))
    return bulk.get(job.id)


def pausing(job: bulk.Job) -> bulk.Job:
    """Run a job until it pauses itself."""
    wait_for(worker_of(job), "paused")
    return bulk.get(job.id)


def in_a_batch(job: bulk.Job) -> batch.Batch:
    """Do one batch, as the body of an atomic step does."""
    with transaction.atomic():
        return batch.run(BulkJob.objects.get(id=job.id).key)


@contextmanager
def held(instance: Instance) -> Iterator[None]:
    """Lock the row of an instance in a transaction of another session."""
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}) as other:
        other.execute("SELECT FROM engine_instance WHERE key = %s FOR UPDATE", [instance.key])
        yield
        other.rollback()


def outcomes(job: bulk.Job) -> list[tuple[str, str]]:
    return [(one.outcome, one.code) for one in bulk.items(job.id)]


def statuses() -> list[str]:
    return list(Instance.objects.of_users().order_by("key").values_list("status", flat=True))


# The set


def test_the_surroundings_name_workflows_what_was_rolled_back_and_other_jobs(
    order: Any, waiting: Any
) -> None:
    failed, others = ended(order, 2), started(waiting, 1)
    job = bulk.start("retry", instances=failed[:1])
    found = surroundings("restart", instances=[*failed, *others])
    assert found.workflows == (("bulk-order", 2), ("bulk-waiting", 1))
    assert [(one.job, one.action, one.count) for one in found.overlaps] == [(job.id, "retry", 1)]
    run(job)
    assert surroundings("restart", "workflow:bulk-order", workflows=["bulk-waiting"]) == Surroundings(
        (), (), ()
    )


def test_a_retry_of_all_that_failed_runs_each_step_again_with_its_key(order: Any, provider: Provider) -> None:
    ended(order, 3)
    first, provider.is_down = sorted(provider.keys), False
    job = bulk.start("retry", "workflow:bulk-order status:errored", by="ana", reason="It is back.")
    assert (job.status, job.total, job.left) == ("running", 3, 3)
    done = run(job)
    assert (done.status, done.done, done.skipped, done.failed, done.left) == ("complete", 3, 0, 0, 0)
    wait_until(lambda: statuses() == ["complete"] * 3)
    assert sorted(provider.keys[3:]) == first


def test_the_set_is_frozen_when_the_job_starts(order: Any, waiting: Any) -> None:
    ended(order, 2)
    job = bulk.start("restart", "status:errored")
    late = run_to_end(order.start(id="late"))
    assert run(job).total == 2
    assert late.refresh().generation == 1
    assert [one.id for one in bulk.items(job.id)] == ["i-0", "i-1"]


def test_items_are_in_the_order_in_which_their_instances_were_started(waiting: Any) -> None:
    first, second, third = started(waiting, 3)
    job = bulk.start("pause", instances=[third, first, second])
    assert [(one.position, one.id) for one in bulk.items(job.id)] == [(1, "i-0"), (2, "i-1"), (3, "i-2")]


def test_the_preview_says_what_is_eligible_and_why_the_rest_is_not(order: Any, waiting: Any) -> None:
    @workflow("bulk-undone")
    async def undone(step: WorkflowStep) -> None:
        await step.do("reserve", lambda: 1, rollback=lambda ctx: None)
        await step.do("charge", lambda: 1 / 0, max_attempts=1)

    ended(order, 2)
    run_to_end(undone.start(id="u"))
    started(waiting, 1)
    paused = waiting.start(id="p").pause()
    assert paused.status == "paused"
    waiting.start(id="t").terminate()
    found = bulk.preview("retry", "workflow:bulk-*")
    assert (found.total, found.eligible, found.examples) == (6, 2, ("bulk-order/i-0", "bulk-order/i-1"))
    assert found.rolled_back is not None
    assert (found.rolled_back.count, found.rolled_back.examples) == (1, ("bulk-undone/u",))
    assert {one.code: (one.count, one.examples) for one in found.skipped} == {
        "finished": (1, ("bulk-waiting/t",)),
        "is_paused": (1, ("bulk-waiting/p",)),
        "not_failed": (1, ("bulk-waiting/i-0",)),
    }
    assert all(one.reason for one in (*found.skipped, found.rolled_back))
    assert not BulkJob.objects.exists()
    job = run(bulk.start("retry", "workflow:bulk-*"))
    assert (job.total, job.done, job.skipped) == (6, 2, 4)


def test_only_workflows_that_the_caller_may_touch_are_chosen(order: Any, waiting: Any) -> None:
    one, other = run_to_end(order.start()), waiting.start()
    assert bulk.preview("restart", instances=[one, other], workflows=["bulk-order"]).total == 1
    assert bulk.preview("restart", "status:errored,queued", workflows=["bulk-waiting"]).total == 1


def test_what_cannot_be_understood_is_refused_and_nothing_is_written(
    order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = started(order, 3)
    with pytest.raises(InvalidQueryError):
        bulk.start("retry", "nonsense:1")
    for wrong in ("", "  "):
        with pytest.raises(InvalidValueError, match="An empty search"):
            bulk.start("retry", wrong)
    with pytest.raises(InvalidValueError, match="There is no action"):
        bulk.start("explode", "status:errored")
    with pytest.raises(InvalidValueError, match="Only the action"):
        bulk.start("retry", "status:errored", rollback=True)
    with pytest.raises(InvalidValueError, match="It must be 'new' or 'same'"):
        bulk.start("restart", "status:errored", keys="other")
    with pytest.raises(TypeError):
        bulk.start("retry")
    monkeypatch.setattr(selection, "MOST_INSTANCES", 2)
    for which in ({"query": "workflow:bulk-order"}, {"instances": found}):
        with pytest.raises(LimitError, match="3"):
            bulk.start("pause", **which)
    assert not BulkJob.objects.exists()
    assert not BulkItem.objects.exists()
    assert not Instance.objects.filter(workflow="reprise.bulk").exists()


# What is done


def test_each_item_has_the_actor_and_the_reason_in_the_audit_trail(waiting: Any) -> None:
    started(waiting, 2)
    job = run(bulk.start("pause", "workflow:bulk-waiting", by="ana", reason="An outage."))
    rows = Audit.objects.filter(verb="pause").order_by("key")
    assert [(one.actor, one.reason, one.instance_id) for one in rows] == [
        ("ana", "An outage.", "i-0"),
        ("ana", "An outage.", "i-1"),
    ]
    (row,) = Audit.objects.filter(verb=steering.START)
    assert (row.actor, row.reason, row.workflow, row.data["bulk"]) == ("ana", "An outage.", "", job.id)


def test_a_users_key_is_recorded_with_each_item(waiting: Any, django_user_model: Any) -> None:
    user = django_user_model.objects.create_user("ben")
    started(waiting, 1)
    run(bulk.start("pause", "workflow:bulk-waiting", by=user))
    assert Audit.objects.get(verb="pause").user_key == str(user.pk)


def test_pause_resume_terminate_and_restart_do_what_they_do_to_one(waiting: Any) -> None:
    started(waiting, 2)
    assert run(bulk.start("pause", "workflow:bulk-waiting")).done == 2
    assert statuses() == ["paused", "paused"]
    assert run(bulk.start("resume", "workflow:bulk-waiting")).done == 2
    assert run(bulk.start("terminate", "workflow:bulk-waiting")).done == 2
    assert statuses() == ["terminated", "terminated"]
    again = run(bulk.start("terminate", "workflow:bulk-waiting"))
    assert outcomes(again) == [("skipped", "finished")] * 2
    assert run(bulk.start("restart", "workflow:bulk-waiting", keys="same")).done == 2
    assert {(one.generation, one.keys_from) for one in Instance.objects.of_users()} == {(2, 1)}


def test_terminate_can_run_the_rollbacks_first() -> None:
    undone: list[str] = []

    def undo(ctx: RollbackContext) -> None:
        undone.append(ctx.name)

    @workflow("bulk-booked")
    async def booked(step: WorkflowStep) -> None:
        await step.do("book", lambda: 1, rollback=undo)
        await step.listen("go")

    one = booked.start()
    wait_until(lambda: one.refresh().status == "waiting")
    assert run(bulk.start("terminate", "workflow:bulk-booked", rollback=True)).done == 1
    run_to_end(one)
    assert (one.refresh().status, undone) == ("terminated", ["book"])


def test_a_retry_ends_back_offs_and_retries_exhausted_steps_and_failed_rollbacks(provider: Provider) -> None:
    def undo(ctx: RollbackContext) -> None:
        if provider.is_down:
            raise ConnectionError("The provider is down.")

    @workflow("bulk-backing-off")
    async def backing_off(step: WorkflowStep) -> str:
        return await step.do("charge", provider.charge, delay="1h")

    @workflow("bulk-exhausted")
    async def exhausted(step: WorkflowStep) -> str:
        return await step.do("charge", provider.charge, max_attempts=1, on_exhausted="pause")

    @workflow("bulk-half-undone")
    async def half_undone(step: WorkflowStep) -> None:
        await step.do("book", lambda: 1, rollback=undo, rollback_options={"max_attempts": 1})
        await step.fail("no")

    found = [one.start() for one in (backing_off, exhausted, half_undone)]
    wait_until(lambda: [one.refresh().status for one in found] == ["waiting", "paused", "errored"])
    provider.is_down = False
    job = run(bulk.start("retry", "workflow:bulk-*"))
    assert outcomes(job) == [("done", "")] * 3
    wait_until(lambda: [one.refresh().status for one in found] == ["complete", "complete", "errored"])
    wait_until(lambda: found[2].refresh().rollback == "complete")
    assert {"retry_now", "retry_step", "retry_rollback"} <= set(Audit.objects.values_list("verb", flat=True))


def test_a_retry_ends_a_back_off_beside_whatever_else_runs(provider: Provider) -> None:
    found = list[Any]()

    def long(ctx: StepContext) -> None:
        instance = Instance.objects.get(workflow="bulk-beside", id=ctx.instance_id)
        if not Step.objects.filter(instance=instance, name="charge", status="waiting").exists():
            raise ValueError("The other step does not back off yet.")
        provider.is_down = False
        found.extend((instance.status, bulk.preview("retry", instances=[instance]).eligible))
        with transaction.atomic():
            actions.perform("retry", {}, lock(instance), by="ana")
        found.append(bulk.preview("retry", instances=[instance]).skipped[0].code)

    @workflow("bulk-beside")
    async def beside(step: WorkflowStep) -> None:
        await asyncio.gather(step.do("charge", provider.charge, delay="1h"), step.do("long", long))

    one = run_to_end(beside.start())
    assert (one.status, found) == ("complete", ["running", 1, "not_failed"])
    assert Audit.objects.filter(verb="retry_now", actor="ana").exists()


def test_one_that_was_restarted_since_is_left_alone(provider: Provider, order: Any) -> None:
    one, _ = ended(order, 2)
    provider.is_down = False  # or what is done again may fail before the job is read
    job = bulk.start("retry", "workflow:bulk-order")
    one.restart()
    done = run(job)
    assert outcomes(done) == [("skipped", "stale"), ("done", "")]
    assert one.refresh().generation == 2
    assert bulk.items(job.id)[0].message == "It was restarted after the job was started."


def test_one_that_was_deleted_or_ended_since_is_skipped(waiting: Any) -> None:
    first, second, _ = started(waiting, 3)
    job = bulk.start("pause", "workflow:bulk-waiting")
    first.terminate()
    first.delete()
    second.terminate()
    assert outcomes(run(job)) == [("skipped", "not_found"), ("skipped", "finished"), ("done", "")]


def test_what_is_skipped_at_once_is_not_in_the_rate(waiting: Any) -> None:
    first, *_ = started(waiting, 2)
    first.terminate()
    job = bulk.start("pause", "workflow:bulk-waiting")
    assert (job.skipped, job.left, job.rate, job.ends_in) == (1, 1, None, None)


def test_an_error_of_one_never_ends_the_job(waiting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    started(waiting, 3)
    pause = lifecycle.pause

    def fails(instance: Instance, **options: Any) -> Instance:
        paused = pause(instance, **options)
        if instance.id == "i-1":
            raise ValueError("a trigger refused it")
        return paused

    with monkeypatch.context() as patch:
        patch.setitem(actions._FUNCTIONS, "pause", fails)
        job = run(bulk.start("pause", "workflow:bulk-waiting"))
    assert outcomes(job) == [("done", ""), ("failed", "ValueError"), ("done", "")]
    (failed,) = bulk.items(job.id, outcome="failed")
    assert failed.message == "a trigger refused it"
    assert Instance.objects.get(id="i-1").status != "paused"  # nothing of it is kept
    again = bulk.retry_failed(job.id, by="ana")
    assert (again.status, again.left, again.failed) == ("running", 1, 0)
    done = run(job)
    assert (done.status, done.done, done.failed) == ("complete", 3, 0)
    assert statuses() == ["paused"] * 3
    assert Audit.objects.filter(verb="pause").count() == 3  # none was paused twice


def test_a_job_is_done_in_batches_that_commit_with_their_checkpoint(
    waiting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "SIZE", 2)
    started(waiting, 5)
    job = run(bulk.start("pause", "workflow:bulk-waiting"))
    assert (job.status, job.done) == ("complete", 5)
    worker = worker_of(job)
    assert Step.objects.filter(instance_id=worker.key, name="batch", status="complete").count() == 3
    assert list(Attempt.objects.filter(instance_id=worker.key).values_list("number", flat=True)) == [1] * 3


def test_one_that_others_hold_waits_for_its_turn_and_holds_up_nobody(waiting: Any) -> None:
    first, *_ = started(waiting, 3)
    job = bulk.start("pause", "workflow:bulk-waiting")
    with held(first):
        found = in_a_batch(job)
        assert found == batch.Batch(is_last=False, wait=2)
        assert [one.outcome for one in bulk.items(job.id)] == ["open", "done", "done"]
    assert outcomes(run(job)) == [("done", "")] * 3


def test_one_that_others_hold_for_more_than_a_minute_fails_and_can_be_retried(waiting: Any) -> None:
    first, *_ = started(waiting, 2)
    job = bulk.start("pause", "workflow:bulk-waiting")
    with held(first):
        waits = [in_a_batch(job).wait for _ in range(batch.MOST_TRIES - 1)]
        assert in_a_batch(job).is_last
    assert waits == [2, 4, 8, 16, 32]
    assert outcomes(job) == [("failed", "locked"), ("done", "")]
    assert bulk.get(job.id).status == "complete"
    bulk.retry_failed(job.id)
    assert outcomes(run(job)) == [("done", "")] * 2


def test_one_that_needs_a_row_that_others_hold_is_tried_again() -> None:
    @workflow("bulk-child")
    async def child(step: WorkflowStep) -> None:
        await step.listen("go")

    @workflow("bulk-parent")
    async def parent(step: WorkflowStep) -> None:
        await step.run_workflow("child", child, None)

    one = parent.start()
    wait_until(lambda: Instance.objects.filter(workflow="bulk-child", status="waiting").exists())
    job = bulk.start("terminate", "workflow:bulk-parent", rollback=True)
    with held(Instance.objects.get(workflow="bulk-child")):
        assert not in_a_batch(job).is_last
    assert one.refresh().status == "waiting"
    assert outcomes(run(job)) == [("done", "")]
    wait_until(lambda: statuses() == ["terminated", "terminated"])


# The job


def test_a_paused_job_does_nothing_until_it_is_resumed(waiting: Any) -> None:
    started(waiting, 2)
    job = bulk.start("pause", "workflow:bulk-waiting")
    paused = bulk.pause(job.id, by="ana", reason="Wait.")
    assert (paused.status, paused.done) == ("paused", 0)
    assert paused.paused_at is not None
    assert bulk.pause(job.id) == paused
    assert bulk.resume(job.id).status == "running"
    assert bulk.resume(job.id).status == "running"
    assert run(job).done == 2
    verbs = Audit.objects.filter(verb__startswith="bulk-").order_by("key").values_list("verb", flat=True)
    assert list(verbs) == ["bulk-start", "bulk-pause", "bulk-resume"]


def test_an_aborted_job_keeps_what_it_did_and_does_no_more(waiting: Any) -> None:
    started(waiting, 2)
    job = bulk.start("pause", "workflow:bulk-waiting")
    aborted = bulk.abort(job.id, by="ana")
    assert (aborted.status, aborted.done, aborted.left) == ("aborted", 0, 2)
    assert aborted.ended_at is not None
    assert worker_of(job).status == "terminated"
    assert (
        bulk.abort(job.id)
        == bulk.resume(job.id)
        == bulk.pause(job.id)
        == bulk.retry_failed(job.id)
        == aborted
    )
    assert "paused" not in statuses()
    done = run(bulk.start("pause", "workflow:bulk-waiting"))
    assert bulk.abort(done.id).status == "complete"


def test_a_job_whose_instance_was_ended_can_be_resumed(waiting: Any) -> None:
    started(waiting, 2)
    job = bulk.start("pause", "workflow:bulk-waiting")
    worker_of(job).terminate()
    assert bulk.get(job.id).status == "errored"
    assert bulk.resume(job.id).status == "running"
    assert run(job).done == 2


def test_a_job_that_applies_to_nothing_completes(waiting: Any) -> None:
    started(waiting, 1)
    job = run(bulk.start("resume", "workflow:bulk-waiting"))
    assert (job.status, job.total, job.skipped) == ("complete", 1, 1)
    assert run(bulk.start("retry", "id:nobody")).status == "complete"


def test_jobs_are_listed_newest_first_and_items_in_pages(waiting: Any) -> None:
    started(waiting, 3)
    first, second = (bulk.start("pause", "workflow:bulk-waiting") for _ in range(2))
    assert [one.id for one in bulk.jobs()] == [second.id, first.id]
    assert [one.id for one in bulk.jobs(before=second.id)] == [first.id]
    assert [one.position for one in bulk.items(first.id, limit=2)] == [1, 2]
    assert [one.position for one in bulk.items(first.id, after=2)] == [3]
    assert bulk.items(first.id, outcome="failed") == []
    for act in (bulk.get, bulk.items, bulk.abort, bulk.pause, bulk.resume, bulk.retry_failed):
        with pytest.raises(BulkJobNotFoundError):
            act("nobody")


def test_a_job_says_how_fast_it_is(waiting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SIZE", 2)
    started(waiting, 3)
    job = bulk.start("pause", "workflow:bulk-waiting")
    assert (job.rate, job.ends_in) == (None, None)
    in_a_batch(job)  # one batch, and no more
    now = bulk.get(job.id)
    assert (now.done, now.left) == (2, 1)
    assert now.rate is not None
    assert now.ends_in == timedelta(seconds=1 / now.rate)
    assert run(job).rate is None


def test_a_start_is_part_of_the_callers_transaction(waiting: Any) -> None:
    started(waiting, 1)
    with transaction.atomic():
        job = bulk.start("pause", "workflow:bulk-waiting")
        transaction.set_rollback(True)
    with pytest.raises(BulkJobNotFoundError):
        bulk.get(job.id)
    assert not BulkItem.objects.exists()


# What is left of it


def test_a_job_is_deleted_30_days_after_its_end_with_its_items(waiting: Any) -> None:
    started(waiting, 5)
    done, aborted, fresh = (bulk.start("resume", "workflow:bulk-waiting") for _ in range(3))
    bulk.pause(fresh.id)
    run(done)
    bulk.abort(aborted.id)
    assert removal.sweep(now=database_time() + timedelta(days=29)) == 0
    assert removal.sweep(batch=2, now=database_time() + timedelta(days=30)) == 2
    assert [one.id for one in bulk.jobs()] == [fresh.id]
    assert BulkItem.objects.count() == 5


def test_a_job_whose_instance_is_gone_is_deleted_too(waiting: Any) -> None:
    started(waiting, 1)
    job = bulk.start("resume", "workflow:bulk-waiting")
    worker_of(job).terminate()
    worker_of(job).delete()
    assert bulk.get(job.id).status == "errored"
    assert removal.sweep(now=database_time() + timedelta(days=31)) == 1
    assert not BulkItem.objects.exists()


# The pace


def test_the_job_pauses_after_the_first_until_somebody_says_go_on(waiting: Any) -> None:
    started(waiting, 3)
    job = pausing(bulk.start("pause", "workflow:bulk-waiting", ask_after=1))
    assert (job.status, job.done, job.left) == ("paused", 1, 2)
    assert job.pause_reason == "The first has been tried. Resume the job to go on."
    bulk.resume(job.id, by="ana")
    done = run(job)
    assert (done.status, done.done, done.pause_reason) == ("complete", 3, "")
    rows = Audit.objects.filter(verb__startswith="bulk-").order_by("key").values_list("verb", "actor")
    assert list(rows) == [("bulk-start", ""), ("bulk-pause", ""), ("bulk-resume", "ana")]


def test_what_is_skipped_is_not_the_first(waiting: Any) -> None:
    first, *_ = started(waiting, 3)
    job = bulk.start("pause", "workflow:bulk-waiting", ask_after=1)
    first.terminate()
    asked = pausing(job)
    assert (asked.skipped, asked.done, asked.left) == (1, 1, 1)


def test_what_is_retried_and_fails_again_stops_the_job(order: Any, provider: Provider) -> None:
    ended(order, 4)
    job = pausing(bulk.start("retry", "workflow:bulk-order", at_once=2, stop_after=2))
    assert (job.status, job.done, job.failed, job.left) == ("paused", 0, 2, 2)
    assert job.pause_reason == "2 new failures. Resume the job to go on."
    failed = bulk.items(job.id, outcome="failed")
    assert [(one.id, one.generation, one.code, one.message) for one in failed] == [
        ("i-0", 2, "failed_again", "It went on and has failed again."),
        ("i-1", 2, "failed_again", "It went on and has failed again."),
    ]
    provider.is_down = False
    bulk.resume(job.id)
    done = run(job)
    assert (done.status, done.done, done.failed) == ("complete", 2, 2)
    bulk.retry_failed(job.id)
    done = run(job)
    assert (done.status, done.done, done.failed) == ("complete", 4, 0)
    wait_until(lambda: statuses() == ["complete"] * 4)


def test_a_rollback_that_was_retried_fails_again_only_if_the_rollback_does(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def undo(ctx: RollbackContext) -> None:
        if provider.is_down:
            raise ConnectionError("The provider is down.")

    @workflow("bulk-half-undone")
    async def half_undone(step: WorkflowStep) -> None:
        await step.do("book", lambda: 1, rollback=undo, rollback_options={"max_attempts": 1})
        await step.fail("no")

    ended(half_undone, 3)
    monkeypatch.setattr(batch, "SIZE", 1)
    job = pausing(bulk.start("retry", "workflow:bulk-half-undone", at_once=1, stop_after=1))
    assert (job.done, job.failed, job.left) == (0, 1, 2)
    provider.is_down = False
    bulk.resume(job.id)
    done = run(job)
    assert (done.status, done.done, done.failed) == ("complete", 2, 1)


def test_failures_before_a_resume_are_not_new(waiting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(instance: Instance, **options: Any) -> Instance:
        raise ValueError("a trigger refused it")

    started(waiting, 5)
    monkeypatch.setitem(actions._FUNCTIONS, "pause", fails)
    monkeypatch.setattr(batch, "SIZE", 1)
    job = bulk.start("pause", "workflow:bulk-waiting", stop_after=2)
    for failed in (2, 4):
        assert (pausing(job).failed, bulk.get(job.id).status) == (failed, "paused")
        bulk.resume(job.id)
    done = run(job)
    assert (done.status, done.failed) == ("complete", 5)


def test_a_job_stops_after_five_failures_unless_told_otherwise(
    waiting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(instance: Instance, **options: Any) -> Instance:
        raise ValueError("a trigger refused it")

    started(waiting, 7)
    monkeypatch.setitem(actions._FUNCTIONS, "pause", fails)
    monkeypatch.setattr(batch, "SIZE", 1)
    assert pausing(bulk.start("pause", "workflow:bulk-waiting")).failed == 5
    assert run(bulk.start("pause", "workflow:bulk-waiting", stop_after=None)).failed == 7


def test_so_many_run_at_a_time(order: Any, provider: Provider) -> None:
    ended(order, 5)
    provider.is_down = False
    job = bulk.start("retry", "workflow:bulk-order", at_once=2)
    assert in_a_batch(job) == batch.Batch(is_last=False)
    assert (bulk.get(job.id).done, statuses().count("queued")) == (2, 2)
    assert in_a_batch(job) == batch.Batch(is_last=False, is_idle=True)  # both are under way
    assert bulk.get(job.id).done == 2
    run_to_end(Instance.objects.get(id="i-0"))
    assert run(job).done == 5
    wait_until(lambda: statuses() == ["complete"] * 5)


@pytest.mark.parametrize("name", ["at_once", "ask_after", "stop_after"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "5", 1_000_001])
def test_a_pace_that_is_no_number_of_instances_is_refused(waiting: Any, name: str, value: Any) -> None:
    started(waiting, 1)
    with pytest.raises(InvalidValueError) as caught:
        bulk.start("pause", "workflow:bulk-waiting", **{name: value})
    assert caught.value.field == name
    assert not BulkJob.objects.exists()


def test_the_pauses_of_the_workflows_end_with_the_start(order: Any, waiting: Any) -> None:
    ended(order, 1)
    for name in ("bulk-order", "bulk-waiting"):
        pauses.pause(name, reason="The bank is down.")
    bulk.start("retry", "workflow:bulk-order", by="ana", reason="It is back.", resume_workflows=True)
    assert [one.workflow for one in pauses.paused()] == ["bulk-waiting"]
    row = Audit.objects.get(verb="workflow-resume")
    assert (row.actor, row.workflow, row.reason) == ("ana", "bulk-order", "It is back.")


# Ids, and who may see a job


def test_an_id_starts_one_job(waiting: Any) -> None:
    started(waiting, 2)
    job = bulk.start("pause", "workflow:bulk-waiting", id="nightly-27")
    with pytest.raises(BulkJobExistsError, match="nightly-27"):
        bulk.start("terminate", "workflow:bulk-waiting", id="nightly-27")
    with pytest.raises(InvalidNameError) as caught:
        bulk.start("pause", "workflow:bulk-waiting", id="no id")
    assert caught.value.field == "id"
    assert [one.id for one in bulk.jobs()] == [job.id]
    assert BulkItem.objects.count() == 2
    assert Audit.objects.filter(verb="bulk-start").count() == 1
    run(job)
    assert statuses() == ["paused"] * 2


def test_a_job_is_seen_by_those_who_see_all_of_its_workflows(order: Any, waiting: Any) -> None:
    started(waiting, 1)
    order.start(id="o-1")
    both = bulk.start("pause", "status:queued")
    mine = bulk.start("pause", "workflow:bulk-waiting")
    empty = bulk.start("pause", "workflow:bulk-waiting id:secret")
    assert [one.id for one in bulk.jobs(workflows=["bulk-waiting", "other"])] == [mine.id]
    assert bulk.get(both.id, workflows=["bulk-waiting", "bulk-order"]) == both
    for hidden in (both, empty):
        with pytest.raises(BulkJobNotFoundError):
            bulk.get(hidden.id, workflows=["bulk-waiting"])
    assert bulk.jobs(workflows=[]) == []


def test_all_that_are_named_are_found_or_none(order: Any, waiting: Any) -> None:
    first, second = started(waiting, 2)
    order.start(id="o-1")
    names = [("bulk-waiting", "i-1"), ("bulk-waiting", "i-0")]
    assert [one.key for one in named(names)] == [second.key, first.key]
    assert named([]) == []
    for wrong, workflows_ in (
        (("bulk-waiting", "i-2"), None),
        (("bulk-order", "o-1"), ["bulk-waiting"]),
        (("reprise.bulk", bulk.start("pause", "workflow:bulk-order").id), None),
    ):
        with pytest.raises(InstanceNotFoundError, match=wrong[1]):
            named([*names, wrong], workflows_)


# Workflows of Reprise itself


def test_nobody_can_declare_a_workflow_with_a_name_of_reprise() -> None:
    with pytest.raises(DeclarationError):

        @workflow("reprise.bulk")
        async def mine(step: WorkflowStep) -> None: ...

    assert "reprise.bulk" not in workflows
    assert "reprise.bulk" in workflows.served
    with pytest.raises(UnknownWorkflowError):
        workflows["reprise.bulk"]


def test_jobs_are_never_the_subject_of_a_job(waiting: Any) -> None:
    started(waiting, 1)
    job = bulk.start("pause", "workflow:bulk-waiting")
    assert bulk.preview("terminate", "system:yes").total == 0
    assert bulk.preview("terminate", instances=[worker_of(job)]).total == 0
