"""What a restart writes, and what it refuses, for every status and every kind of row."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from engine import (
    InstanceFinishedError,
    InstanceNeededError,
    InstanceNotFoundError,
    InvalidValueError,
    LimitError,
    RestartError,
    StepNotFoundError,
    WorkflowStep,
    workflow,
)
from engine.models import Attempt, Audit, Event, Instance, Log, Step, Waiter
from engine.steer.restart import preview
from tests.integration.plants import DONE, ENDED, child_of, kept, restarted, running, waiting
from tests.integration.rows import NOW, attempt_of, event_of, row_of, step_of
from tests.integration.sessions import Hints, together
from tests.integration.test_lifecycle import STATES, in_state
from tests.sample.workflows import tick

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("state", STATES)
def test_it_works_from_every_status(state: str) -> None:
    instance = in_state(state)
    step_of(instance)
    attempt_of(instance)
    Instance.objects.filter(key=instance.key).update(quarantined=True)
    before, fence, created_at = instance.status, instance.fence, instance.created_at
    instance.restart(by="ada", reason="again")
    assert (instance.status, instance.generation, instance.owner) == ("queued", 2, None)
    assert (instance.output, instance.error, instance.rollback, instance.ends_as) == (None, None, "", "")
    assert (instance.started_at, instance.finished_at, instance.paused_at) == (None, None, None)
    assert (instance.waiting_for, instance.unreached, instance.quarantined) == ("", [], False)
    assert (instance.created_at, instance.code) == (created_at, tick.fingerprint)
    assert instance.wake_at is not None
    assert instance.fence > fence
    trail = Audit.objects.get(verb="restart")
    assert (trail.actor, trail.reason, trail.before, trail.after) == ("ada", "again", before, "queued")
    old = instance.generations.get()
    is_finished = before in ("complete", "errored", "terminated")
    assert (old.number, old.status) == (1, before if is_finished else "terminated")
    if not is_finished:
        assert Step.objects.get(instance=instance).status == "cancelled"
        # Where nobody drove the instance, nobody ran the body either: a dead worker had left the attempt.
        is_held = before in ("running", "waiting_for_pause")
        assert Attempt.objects.get(instance=instance).status == ("cancelled" if is_held else "lost")


def test_a_generation_is_kept_as_it_stood() -> None:
    error = {"type": "E", "message": "no"}
    stood = {"error": error, "rollback": "failed", "unreached": [2], "code": "old", "started_at": NOW}
    instance = row_of(status="errored", finished_at=NOW, **{"wake_at": None, **stood})
    instance.restart()
    old = instance.generations.get()
    assert {name: getattr(old, name) for name in stood} == stood
    assert (old.finished_at, old.output) == (NOW, None)


def test_one_that_is_rolled_back_ends_with_a_failed_rollback() -> None:
    """As when it is terminated during its rollbacks: what is half undone was not undone"""
    instance = running(rollback="running", ends_as="errored", error={"type": "E"})
    step_of(instance, **{**ENDED, "rollback": "running", "options": {"rollback": {}}})
    instance.restart()
    old = instance.generations.get()
    assert (old.status, old.rollback, old.error) == ("terminated", "failed", {"type": "E"})
    assert Step.objects.get(instance=instance).rollback == "failed"


def test_the_deadline_is_anew(own_registry: None) -> None:
    """The workflow's present one; if it is not known here, as far away as it was"""

    @workflow(timeout="1h")
    async def hurried(step: WorkflowStep) -> None: ...

    known = row_of(workflow="hurried", deadline_at=NOW).restart()
    assert known.wake_at is not None
    assert known.deadline_at is not None
    assert abs(known.deadline_at - known.wake_at - timedelta(hours=1)) < timedelta(seconds=1)
    unknown = row_of(workflow="gone", code="its own")
    Instance.objects.filter(key=unknown.key).update(deadline_at=unknown.created_at + timedelta(days=2))
    for _ in range(2):
        unknown.restart()
        assert unknown.wake_at is not None
        assert unknown.deadline_at is not None
        assert abs(unknown.deadline_at - unknown.wake_at - timedelta(days=2)) < timedelta(minutes=1)
    assert unknown.code == "its own"
    assert row_of(id="free", deadline_at=NOW).restart().deadline_at is None


def test_an_outcome_that_stands_is_kept_before_its_turn() -> None:
    """Guarantee 18: an atomic step has happened once, whether the handler knows of it or not"""
    instance = row_of(status="errored", error={}, finished_at=NOW, wake_at=None)
    step_of(instance, 1, **{**ENDED, "delivery": None, "options": {"atomic": True}})
    step_of(instance, 2, **{**ENDED, "delivery": 7})
    step_of(instance, 3, **{**ENDED, "status": "cancelled", "delivery": None, "output": None})
    step_of(instance, 4, **{**ENDED, "delivery": 9})
    plan = preview(instance, "s4")
    assert [one.name for one in plan.keeps] == ["s1", "s2"]
    assert [one.name for one in plan.runs_again] == ["s3", "s4"]
    instance.restart("s4")
    copies = Step.objects.filter(instance=instance, generation=2).order_by("seq")
    assert list(copies.values_list("seq", "delivery", "kept_from")) == [(1, None, 1), (2, 1, 1)]


def test_what_was_rolled_back_beneath_a_step_is_not_kept() -> None:
    instance = row_of(status="errored", error={}, finished_at=NOW, wake_at=None, rollback="complete")
    step_of(instance, 1, **ENDED)
    step_of(instance, 2, parent=1, **{**ENDED, "delivery": None, "rollback": "complete"})
    step_of(instance, 3, **{**ENDED, "delivery": 2})
    with pytest.raises(
        RestartError, match='step do "s1", which is before it, has been rolled back'
    ) as refused:
        instance.restart("s3")
    assert preview(instance, "s3").refused == str(refused.value)
    assert (refused.value.undone, refused.value.first_undone) == ('do "s1"', 'do "s1"')
    assert (instance.refresh().generation, Audit.objects.count()) == (1, 0)
    assert instance.restart("s1").generation == 2


def test_only_the_present_generation_is_asked_for_a_step() -> None:
    instance = restarted()
    step_of(instance, 1, **ENDED)
    with pytest.raises(StepNotFoundError, match="Its steps: none") as refused:
        instance.restart("s1")
    assert (refused.value.step, refused.value.known) == (("do", "s1", 1), [])


def test_a_step_that_was_kept_may_be_restarted_from() -> None:
    instance = restarted()
    kept(instance, 1)
    kept(instance, 2, delivery=2)
    instance.restart("s2")
    copies = Step.objects.filter(instance=instance, generation=3)
    assert list(copies.values_list("seq", "kept_from")) == [(1, 1)]


def test_what_the_last_generation_waited_for_is_forgotten_and_who_waits_for_it_waits_on() -> None:
    other = row_of(id="other", status="waiting", waiting_for="child", wake_at=None)
    instance = waiting(id="one")
    step_of(instance, kind="child", status="waiting")
    step_of(other, kind="child", status="waiting")
    Waiter.objects.create(waiter=instance, generation=1, seq=1, instance=other)
    Waiter.objects.create(waiter=other, generation=1, seq=1, instance=instance)
    instance.restart()
    assert list(Waiter.objects.values_list("waiter_id", flat=True)) == [other.key]
    assert other.refresh().wake_at is None


@pytest.mark.parametrize(
    ("status", "is_tied"), [("waiting", True), ("cancelled", False), ("complete", False)]
)
def test_a_child_is_tied_while_its_parent_waits(status: str, is_tied: bool) -> None:
    parent = waiting(id="parent", waiting_for="child")
    ended = {} if status == "waiting" else {"finished_at": NOW}
    step_of(parent, kind="child", status=status, **ended)
    child = child_of(parent, **DONE)
    assert child.restart().is_tied is is_tied


def test_children_of_open_steps_end_with_the_restart_without_any_worker() -> None:
    parent = waiting(id="parent", waiting_for="child")
    step_of(parent, kind="child", status="waiting")
    child = child_of(parent, status="queued", wake_at=NOW)
    parent.restart()
    trail = Audit.objects.get(instance_key=child.key)
    assert (child.refresh().status, parent.refresh().notify_pending) == ("terminated", False)
    assert (trail.verb, trail.reason) == ("terminate", "Its parent tick/parent no longer waits for it.")


@pytest.mark.parametrize("reason", ["x" * 2001, "a\0b"])
def test_a_reason_that_cannot_be_stored_changes_nothing(reason: str) -> None:
    instance = row_of(**DONE)
    for act in (instance.restart, instance.delete):
        with pytest.raises((LimitError, InvalidValueError)):
            act(reason=reason)
    assert (instance.refresh().generation, Audit.objects.count()) == (1, 0)


def test_nothing_is_deleted_that_somebody_waits_for() -> None:
    other = waiting(id="other", waiting_for="child")
    step_of(other, kind="child", status="waiting")
    instance = row_of(**DONE)
    Waiter.objects.create(waiter=other, generation=1, seq=1, instance=instance)
    with pytest.raises(InstanceNeededError, match='"other"'):
        instance.delete()
    other.terminate()
    instance.delete()
    assert list(Instance.objects.all()) == [other]


@pytest.mark.django_db(transaction=True)
def test_nothing_is_deleted_whose_child_cannot_be_ended_yet() -> None:
    """Nothing could tell it any more to end."""
    parent = row_of(id="parent", notify_pending=True, **DONE)
    step_of(parent, kind="child", status="cancelled", finished_at=NOW)
    child = child_of(parent, status="queued")
    with transaction.atomic():
        Instance.objects.select_for_update(no_key=True).get(key=child.key)
        (refused,) = together(1, lambda number: Instance.objects.get(key=parent.key).delete())
    assert isinstance(refused, InstanceNeededError)
    parent.delete()
    assert list(Instance.objects.values_list("id", "status")) == [(child.id, "terminated")]


def test_all_that_is_recorded_is_deleted() -> None:
    instance, neighbour = restarted(id="one"), row_of(id="two")
    for one in (instance, neighbour):
        step_of(one)
        attempt_of(one)
        event_of(one)
        Log.objects.create(instance=one, generation=1, level="info", message="", at=NOW)
    instance.terminate().delete()
    for model in (Step, Attempt, Event, Log):
        assert list(model.objects.values_list("instance_id", flat=True)) == [neighbour.key]
    for act in (instance.restart, instance.delete, lambda: preview(instance)):
        with pytest.raises(InstanceNotFoundError):
            act()


@pytest.mark.django_db(transaction=True)
def test_who_must_know_is_told(hints: Hints) -> None:
    instance = in_state("running")
    key = str(instance.key)
    instance.restart()
    assert sorted(set(hints.heard())) == [("engine_changed", key), ("engine_wake", ""), ("engine_wake", "7")]
    instance.terminate()
    hints.heard()
    instance.delete()
    assert hints.heard() == [("engine_changed", key)]


@pytest.mark.django_db(transaction=True)
def test_the_async_twins_do_the_same() -> None:
    instance = tick.start(id="one")

    async def work() -> list[Any]:
        await instance.arestart(reason="a")
        await instance.aterminate()
        await instance.adelete(by="ada")
        return (await tick.adelete_many(["one"])).errors

    assert [error["code"] for error in async_to_sync(work)()] == ["not_found"]
    assert list(Audit.objects.order_by("key").values_list("verb", flat=True)) == [
        "restart",
        "terminate",
        "delete",
    ]


@pytest.mark.django_db(transaction=True)
def test_the_answers_of_many_operators_fit_the_trail() -> None:
    """I16: every accepted action is in the audit trail, in one order, and nothing waits forever"""
    instance = waiting(id="one")
    step_of(instance, **ENDED)
    attempt_of(instance, status="complete", finished_at=NOW)
    step_of(instance, 2, kind="event", status="waiting", event_types=["e"])
    actions = (
        lambda one: one.restart(),
        lambda one: one.restart("s2", kind="event"),
        lambda one: one.pause(),
        lambda one: one.resume(),
        lambda one: one.send_event("e", by="ada"),
        lambda one: one.terminate(),
    )
    answers = together(30, lambda number: actions[number % 6](Instance.objects.get(key=instance.key)))
    refused = {type(answer) for answer in answers if isinstance(answer, Exception)}
    assert refused <= {StepNotFoundError, InstanceFinishedError}
    trail = list(Audit.objects.order_by("key").values_list("verb", "before", "after"))
    assert all(left[2] == right[1] for left, right in pairwise(trail))
    restarts = sum(verb == "restart" for verb, _, _ in trail)
    assert restarts >= 5
    assert (instance.refresh().generation, instance.status) == (1 + restarts, trail[-1][2])
    assert instance.generations.count() == restarts
