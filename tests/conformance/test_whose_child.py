"""Whoever may start a workflow, or delete an instance, cannot put another one in the place of somebody's child."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import pytest

from engine import InstanceNeededError, WorkflowStep, branch, workflow, workflows
from engine.declare.registry import Workflow
from engine.models import Instance, Waiter
from engine.steer.deletion import remove
from engine.values.identity import StepIdentity, child_id
from tests.stories import run_to_end, running_shift, wait_for, wait_until

CALLS = ["run_workflow", "parallel", "spawn"]


def parent(call: str) -> Workflow[Any, Any]:
    """One that waits to be told to go on, starts a child with honest params, and returns what that came to."""

    @workflow
    async def child(step: WorkflowStep, params: str) -> str:
        if params == "slow":
            await step.listen("end")
        return params

    @workflow
    async def story(step: WorkflowStep, params: str) -> Any:
        await step.listen("begin")
        if call == "run_workflow":
            return await step.run_workflow("child", child, params)
        if call == "parallel":
            return (await step.parallel("child", branch(child, params)))[0]
        handle = await step.spawn("child", child, params)
        await step.listen("look")
        return (await step.wait_for_instance("end", handle)).output

    return story


def path(call: str) -> tuple[StepIdentity, ...]:
    """Return the identities of the steps that lead to the child."""
    if call == "parallel":
        return StepIdentity(0, "parallel", "child", 1), StepIdentity(2, "child", "child", 1)
    return (StepIdentity(0, "child", "child", 1),)


def made_from_what_everybody_sees(instance: Instance, call: str) -> str:
    """Return what the id of the child would be if it was a digest of facts that the pages show."""
    steps = [list(one[1:]) for one in path(call)]
    parts = ["child", instance.key, instance.workflow, instance.id, 1, steps]
    return f"{instance.id}-{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]}"


def forge(id: str) -> Instance:
    """Do what a person can who may start the child's workflow, and knows the id."""
    return workflows["child"].start("forged", id=id, by="mallory")


def child_of(instance: Instance) -> Instance:
    found = Instance.objects.filter(parent_key=instance.key)
    wait_until(found.exists, what="the child")
    return found.get()


def tell_all(instance: Instance) -> Instance:
    for name in ("begin", "look"):
        instance.send_event(name)
    return wait_for(instance)


@pytest.mark.parametrize("call", CALLS)
def test_the_id_of_a_child_cannot_be_foretold(call: str) -> None:
    instance = parent(call).start("honest", id="victim")
    with running_shift():
        wait_for(instance, "waiting")
        forge(made_from_what_everybody_sees(instance, call))
        assert tell_all(instance).output == "honest"


@pytest.mark.parametrize("call", CALLS)
def test_an_instance_with_the_id_of_a_child_fails_the_parent_and_says_so(call: str, settings: Any) -> None:
    """Who knows the secret key, or writes to the database, still forges nothing."""
    instance = parent(call).start("honest", id="victim")
    taken = child_id(instance.key, "story", "victim", 1, path(call), secret=settings.SECRET_KEY)
    forge(taken)
    with running_shift():
        wait_for(instance, "waiting")
        tell_all(instance)
    assert (instance.status, instance.error["type"]) == ("errored", "ChildIdTakenError")
    assert instance.error["message"] == (
        f'A child of workflow "child" could not be started: its id "{taken}" belongs to an instance that this one '
        "did not start. Delete that instance, then restart this one."
    )
    assert not Instance.objects.filter(parent_key=instance.key).exists()


def test_it_says_so_beside_a_sensitive_step_too(settings: Any) -> None:
    """Both are written at once, and what the database says of the values of such a step is not shown."""

    @workflow
    async def child(step: WorkflowStep, params: str) -> None: ...

    @workflow
    async def story(step: WorkflowStep, params: str) -> None:
        await asyncio.gather(
            step.do("key", lambda: "s3cr3t", sensitive=True), step.run_workflow("child", child, params)
        )

    instance = story.start("honest", id="victim")
    taken = child_id(instance.key, "story", "victim", 1, path("run_workflow"), secret=settings.SECRET_KEY)
    forge(taken)
    error = run_to_end(instance).error
    assert error["type"] == "ChildIdTakenError"
    assert f'its id "{taken}" belongs to an instance that this one did not start' in error["message"]


def test_what_has_come_after_a_deleted_child_is_not_taken_for_it() -> None:
    instance = parent("spawn").start("honest")
    with running_shift():
        instance.send_event("begin")
        child = wait_for(child_of(instance))
        child.delete()
        forge(child.id)
        assert tell_all(instance).error["type"] == "InstanceNotFoundError"


@pytest.mark.parametrize("call", CALLS[:2])
def test_what_stands_in_the_place_of_a_child_that_is_lost_is_not_taken_for_it(call: str) -> None:
    """Nobody can delete a child that is waited for; but rows may be lost by hand, or by a restored backup."""
    instance = parent(call).start("slow")
    with running_shift():
        instance.send_event("begin")
        child = wait_for(child_of(instance), "waiting")
        remove([child.key])
        wait_for(forge(child.id))
        instance.pause()
        assert wait_for(instance.resume()).error["details"]["status"] == "deleted"


def test_what_somebody_waits_for_cannot_be_deleted_until_they_know_how_it_ended() -> None:
    """Or another one, under the same id, would be taken for it."""
    parent("run_workflow")

    @workflow
    async def watcher(step: WorkflowStep) -> Any:
        return (await step.wait_for_instance("end", workflow="child", id="watched")).output

    watched = workflows["child"].start("slow", id="watched")
    instance = watcher.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.pause()
        watched.send_event("end")
        wait_for(watched)
        wait_until(lambda: instance.refresh().signals >= 2, what="the watcher being told")
        with pytest.raises(InstanceNeededError):
            watched.delete()
        assert wait_for(instance.resume()).output == "slow"
        watched.delete()


def test_what_ends_again_before_its_watcher_has_looked_is_told_again() -> None:
    parent("run_workflow")

    @workflow
    async def watcher(step: WorkflowStep) -> Any:
        return (await step.wait_for_instance("end", workflow="child", id="watched")).output

    watched = workflows["child"].start("slow", id="watched")
    instance = watcher.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.pause()
        watched.send_event("end")
        wait_for(watched)
        wait_until(
            lambda: Waiter.objects.filter(told_at__isnull=False).exists(), what="the watcher being told"
        )
        watched.restart()
        wait_for(watched, "waiting")
        assert wait_for(instance.resume(), "waiting").waiting_for == "child"
        watched.send_event("end")
        assert wait_for(instance).output == "slow"
        wait_until(lambda: not Waiter.objects.exists(), what="the note being forgotten")
