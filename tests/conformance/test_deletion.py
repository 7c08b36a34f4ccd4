"""Delete: finished instances, with everything they recorded except the audit trail."""

from __future__ import annotations

import threading

import pytest

from engine import (
    InstanceNeededError,
    InstanceNotFinishedError,
    InstanceNotFoundError,
    InvalidNameError,
    LimitError,
    WorkflowStep,
    workflow,
)
from engine.models import Attempt, Audit, Event, Generation, Instance, Log, Step
from tests import shifts
from tests.shifts import until
from tests.stories import run_to_end, running_shift, wait_for

pytestmark = pytest.mark.usefixtures("nothing_is_violated")


def test_nothing_is_left_but_the_trail() -> None:
    """Guarantee 14, section 5: a new instance may have the id"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        step.log.info("line")
        await step.do("a", str)
        await step.wait_for_event("e")

    instance, other = story.start(id="one"), story.start(id="other")
    with shifts.running_shift():
        instance.send_event("e")
        other.send_event("e")
        shifts.wait_for(instance)
        shifts.wait_for(other)
        instance.restart("e", kind="event")
        shifts.wait_for(instance)
    instance.delete(by="ada", reason="enough")
    for model in (Step, Attempt, Event, Log, Generation):
        assert set(model.objects.values_list("instance_id", flat=True)) <= {other.key}
    assert list(Instance.objects.all()) == [other]
    trail = Audit.objects.get(verb="delete")
    assert (trail.actor, trail.reason, trail.instance_id, trail.before) == (
        "ada",
        "enough",
        "one",
        "complete",
    )
    with pytest.raises(InstanceNotFoundError):
        instance.delete()
    assert shifts.run_to_end(story.start(id="one").terminate()).status == "terminated"


@pytest.mark.parametrize("status", ["queued", "waiting", "paused"])
def test_only_what_is_finished_is_deleted(status: str) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.sleep("nap", "1h")

    instance = story.start()
    if status != "queued":
        with shifts.running_shift():
            shifts.wait_for(instance, "waiting")
    if status == "paused":
        instance.pause()
    with pytest.raises(InstanceNotFinishedError, match=status):
        instance.delete()
    assert Instance.objects.count() == 1
    instance.terminate().delete()
    assert Instance.objects.count() == 0


def test_many_are_deleted_at_once() -> None:
    """CF-76: missing ones are reported, and those named twice are deleted"""

    @workflow
    async def story(step: WorkflowStep) -> None: ...

    @workflow
    async def other(step: WorkflowStep) -> None: ...

    a, b, kept = story.start(id="a"), story.start(id="b"), other.start(id="a")
    with running_shift():
        for one in (a, b, kept):
            wait_for(one)
    story.start(id="open").pause()
    done = story.delete_many(["a", "missing", "b", "a", "open"], by="ada")
    assert done.deleted == ["a", "b", "a"]
    assert [(error["index"], error["id"], error["code"]) for error in done.errors] == [
        (1, "missing", "not_found"),
        (4, "open", "not_finished"),
    ]
    assert Audit.objects.filter(verb="delete", actor="ada").count() == 2
    assert set(Instance.objects.values_list("workflow", "id")) == {("other", "a"), ("story", "open")}


def test_a_list_that_is_wrong_deletes_nothing() -> None:
    """CF-76: none, too many, or one that cannot be an id"""

    @workflow
    async def story(step: WorkflowStep) -> None: ...

    run_to_end(story.start(id="a"))
    with pytest.raises(LimitError, match="101"):
        story.delete_many(["a"] * 101)
    with pytest.raises(LimitError, match="at least one"):
        story.delete_many([])
    with pytest.raises(InvalidNameError, match="a b"):
        story.delete_many(["a", "a b"])
    with pytest.raises(InvalidNameError, match="Pass a list"):
        story.delete_many("a")
    assert Instance.objects.count() == 1
    assert len(story.delete_many(["a"] * 100).deleted) == 100


def test_a_child_is_kept_until_its_parent_has_taken_in_how_it_ended() -> None:
    gate = threading.Event()

    @workflow
    async def child(step: WorkflowStep) -> str:
        await step.do("grow", until, gate)
        return "grown up"

    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.run_workflow("child", child)

    instance = story.start(id="parent")
    with shifts.running_shift():
        shifts.wait_for(instance, "waiting")
        instance.pause()
        gate.set()
        one = shifts.wait_for(Instance.objects.get(workflow="child"))
        with pytest.raises(InstanceNeededError, match="parent"):
            one.delete()
        assert child.delete_many([one.id]).errors[0]["code"] == "needed"
        shifts.wait_for(instance.resume())
    assert instance.output == "grown up"
    one.delete()
    assert list(Instance.objects.all()) == [instance]
