"""Children: started once, waited for without a lost wake-up, ended with their parents."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from engine import (
    ChildWorkflowError,
    Handle,
    InstanceNotFoundError,
    InstanceResult,
    InstanceTimeoutError,
    InvalidParamsError,
    LimitError,
    RollbackContext,
    StepConfigError,
    UnknownWorkflowError,
    WorkflowStep,
    branch,
    workflow,
)
from engine.declare.registry import Workflow
from engine.models import Audit, Instance, Waiter
from tests import shifts
from tests.records import crash, step, steps
from tests.shifts import until
from tests.stories import run_to_end, running_shift, wait_for, wait_until
from tests.travel import age


def children(parent: Instance) -> list[Instance]:
    """Return what the instance has started, in order."""
    return list(Instance.objects.filter(parent_key=parent.key).order_by("parent_step", "key"))


def one_child(parent: Instance) -> Instance:
    wait_until(lambda: len(children(parent)) == 1, what="the child")
    return children(parent)[0]


def nothing_is_owed() -> bool:
    return not Instance.objects.filter(notify_pending=True).exists()


def doubling() -> Workflow[int, int]:
    @workflow
    async def double(step: WorkflowStep, params: int) -> int:
        return await step.do("double", lambda: params * 2)

    return double


def listening() -> Workflow[Any, Any]:
    """A child that ends when the test says so, as the test says."""

    @workflow
    async def listener(step: WorkflowStep, params: Any) -> Any:
        said = (await step.wait_for_event("go", timeout=None)).payload
        if said == "fail":
            await step.fail("told to")
        return said

    return listener


# run_workflow


def test_a_child_runs_once_and_its_output_is_the_parents_to_use() -> None:
    """KC-22: a parent that is replayed three times starts its child once, and both point to each other"""
    double, turns = doubling(), list[int]()

    @workflow
    async def story(step: WorkflowStep) -> int:
        turns.append(1)
        value = await step.run_workflow("child", double, 21)
        for _ in range(3):
            await step.sleep("nap", 0.3)
        return value

    instance = run_to_end(story.start(id="parent"))
    [child] = children(instance)
    assert (instance.output, len(turns) >= 5) == (42, True)
    assert (child.output, child.params, child.is_tied, child.depth) == (42, 21, True, 1)
    assert (child.parent_generation, child.parent_step) == (1, step(instance, "child").seq)
    assert child.id.startswith("parent-")
    assert step(instance, "child").options == {
        "operation": "run_workflow",
        "workflow": "double",
        "id": child.id,
    }


def test_what_a_child_returns_has_its_workflows_type_live_and_replayed() -> None:
    seen: list[Any] = []

    @workflow
    async def child(step: WorkflowStep) -> timedelta:
        return timedelta(seconds=90)

    @workflow
    async def story(step: WorkflowStep) -> None:
        seen.append(await step.run_workflow("child", "child"))
        await step.sleep("nap", 0.3)

    run_to_end(story.start())
    assert len(seen) >= 2
    assert set(seen) == {timedelta(seconds=90)}


def test_a_child_that_fails_raises_and_does_not_return() -> None:
    """KC-23"""
    listener = listening()
    seen: list[ChildWorkflowError] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            await step.run_workflow("child", listener, None)
        except ChildWorkflowError as error:
            seen.append(error)
        await step.sleep("nap", 0.3)
        return "caught"

    instance = story.start()
    with running_shift():
        one_child(instance).send_event("go", "fail")
        wait_for(instance)
    assert instance.output == "caught"
    assert len(seen) >= 2
    [child] = children(instance)
    for error in seen:
        assert (error.workflow, error.id, error.status) == ("listener", child.id, "errored")
        assert error.error is not None
        assert (error.error.type, error.error.message) == ("WorkflowFailed", "told to")


def test_a_child_that_is_terminated_by_hand_fails_its_parent() -> None:
    listener = listening()

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.run_workflow("child", listener, None)

    instance = story.start()
    with shifts.running_shift():
        child = one_child(instance)
        shifts.wait_for(instance, "waiting")
        assert instance.waiting_for == "child"
        child.terminate(by="ada")
        shifts.wait_for(instance)
    assert instance.error["type"] == "ChildWorkflowError"
    assert instance.error["details"]["status"] == "terminated"


def test_a_child_that_is_paused_keeps_its_parent_waiting() -> None:
    """Pausing one does not pause the other."""
    listener = listening()

    @workflow
    async def story(step: WorkflowStep) -> Any:
        return await step.run_workflow("child", listener, None)

    instance = story.start()
    with running_shift():
        child = one_child(instance)
        wait_for(child, "waiting")
        child.pause()
        child.send_event("go", 1)
        wait_for(instance, "waiting")
        instance.pause()
        child.resume()
        wait_for(child)
        wait_until(lambda: not child.refresh().notify_pending, what="the news being told")
        assert instance.refresh().status == "paused"
        instance.resume()
        wait_for(instance)
    assert instance.output == 1


def test_params_that_do_not_fit_are_refused_at_the_call_and_nothing_is_recorded() -> None:
    double = doubling()
    problems: list[str] = []

    @workflow
    async def story(step: WorkflowStep) -> None:
        for call in (step.run_workflow, step.spawn):
            try:
                await call("child", double, "x")  # type: ignore[operator]
            except InvalidParamsError as error:
                problems.append(str(error))
        with pytest.raises(InvalidParamsError):
            await step.parallel("both", branch(double, 1), branch(double, "x"))
        with pytest.raises(UnknownWorkflowError, match='Did you mean "double"'):
            await step.run_workflow("child", "duoble", 1)

    instance = run_to_end(story.start())
    assert (instance.status, len(problems), steps(instance), children(instance)) == ("complete", 2, [], [])


def test_a_gather_of_children_has_their_outputs_in_order() -> None:
    double = doubling()

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        return await asyncio.gather(*(step.run_workflow("child", double, n) for n in range(5)))

    instance = run_to_end(story.start())
    assert instance.output == [0, 2, 4, 6, 8]
    assert len({child.id for child in children(instance)}) == 5


@pytest.mark.parametrize("parks", [True, False])
def test_a_call_that_is_cancelled_ends_its_child_and_the_parent_goes_on(parks: bool) -> None:
    listener, is_over = listening(), threading.Event()

    async def busy() -> None:
        while not is_over.is_set():
            await asyncio.sleep(0.01)

    @workflow
    async def story(step: WorkflowStep) -> str:
        loser = asyncio.ensure_future(step.run_workflow("loser", listener, None))
        await step.wait_for_event("enough", timeout=None)
        loser.cancel()
        await (step.wait_for_event("end", timeout=None) if parks else step.do("busy", busy))
        return "done"

    instance = story.start()
    with shifts.running_shift():
        child = one_child(instance)
        instance.send_event("enough")
        shifts.wait_for(child)
        shifts.wait_until(lambda: not instance.refresh().notify_pending, what="the mark being cleared")
        assert (child.status, instance.is_finished) == ("terminated", False)
        if parks:
            instance.send_event("end")
        is_over.set()
        shifts.wait_for(instance)
    assert step(instance, "loser").status == "cancelled"
    trail = Audit.objects.get(instance_key=child.key, verb="terminate")
    assert trail.reason == f"Its parent story/{instance.id} no longer waits for it."


def test_a_parent_that_fails_ends_the_child_that_it_waits_for_and_not_what_it_spawned() -> None:
    """guarantees 10 and 13"""
    listener = listening()

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.spawn("free", listener, "free")
        waiting = asyncio.ensure_future(step.run_workflow("tied", listener, "tied"))
        await step.wait_for_event("fail", timeout=None)
        await step.fail("enough")
        await waiting

    instance = story.start()
    with running_shift():
        wait_until(lambda: len(children(instance)) == 2, what="the children")
        instance.send_event("fail")
        free, tied = children(instance)
        wait_for(tied)
        assert wait_for(instance).status == "errored"
    assert (tied.status, free.refresh().status) == ("terminated", "waiting")
    assert step(instance, "tied").status == "cancelled"


def test_a_parent_that_runs_out_of_time_ends_the_child_that_it_waits_for() -> None:
    listener = listening()

    @workflow(timeout="1h")
    async def story(step: WorkflowStep) -> None:
        await step.run_workflow("child", listener, None)

    instance = story.start()
    with running_shift():
        child = one_child(instance)
        wait_for(instance, "waiting")
        age(instance, hours=1)
        wait_for(instance)
        wait_for(child)
    assert (instance.error["type"], child.status) == ("WorkflowTimeoutError", "terminated")


@pytest.mark.parametrize("by_hand", [False, True])
def test_the_children_of_a_parent_that_is_rolled_back_are_ended_too(by_hand: bool) -> None:
    listener, undone = listening(), list[Any]()

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("charge", lambda: 7, rollback=lambda ctx: undone.append(ctx.output))
        waiting = asyncio.ensure_future(step.run_workflow("tied", listener, None))
        await step.wait_for_event("fail", timeout=None)
        await step.fail("enough")
        await waiting

    instance = story.start()
    with shifts.running_shift():
        child = one_child(instance)
        if by_hand:
            instance.terminate(rollback=True)
        else:
            instance.send_event("fail")
        shifts.wait_for(child)
        shifts.wait_for(instance)
    assert (instance.status, instance.rollback) == ("terminated" if by_hand else "errored", "complete")
    assert (child.status, undone) == ("terminated", [7])


def test_rolling_a_parent_back_rolls_back_those_that_end_with_it() -> None:
    undone: list[str] = []
    release, entered = threading.Event(), threading.Event()

    def undo(ctx: RollbackContext) -> None:
        undone.append(ctx.output)

    async def work(name: str) -> str:
        if name == "busy":
            entered.set()
            await until(release)
        return name

    @workflow
    async def leaf(step: WorkflowStep, name: str) -> None:
        await step.do("charge", lambda: name, rollback=undo)
        await step.do("work", work, name)
        await step.listen("never")

    @workflow
    async def middle(step: WorkflowStep) -> None:
        """Have nothing to undo itself."""
        await step.spawn("free", leaf, "free")
        await step.parallel("two", branch(leaf, "parked"), branch(leaf, "busy"))

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("charge", lambda: "top", rollback=undo)
        await step.run_workflow("middle", middle)

    instance = story.start()
    with shifts.running_shift():
        assert entered.wait(60)
        shifts.wait_for(instance, "waiting")
        child = one_child(instance)
        shifts.wait_for(child, "waiting")
        leaves = {one.params: one for one in children(child)}
        for name in ("free", "parked"):
            shifts.wait_for(leaves[name], "waiting")
        instance.terminate(rollback=True)
        for one in (instance, child, leaves["parked"], leaves["busy"]):
            shifts.wait_for(one)
        shifts.wait_until(nothing_is_owed)
    assert sorted(undone) == ["busy", "parked", "top"]
    ends = {one: (leaves[one].refresh().status, leaves[one].rollback) for one in leaves}
    rolled_back = ("terminated", "complete")
    assert ends == {"free": ("waiting", ""), "parked": rolled_back, "busy": rolled_back}
    assert [(one.status, one.rollback) for one in (instance, child)] == [rolled_back, ("terminated", "")]
    told = Audit.objects.filter(workflow="leaf").values_list("verb", "actor", "reason")
    assert set(told) == {("terminate", "", f"Its parent story/{instance.id} is rolled back.")}


def test_terminating_ends_descendants_through_all_generations() -> None:
    """guarantee 13: run_workflow and parallel, not spawn; at once, without a worker"""
    listener = listening()

    @workflow
    async def middle(step: WorkflowStep) -> None:
        await step.spawn("free", listener, None)
        await step.parallel("two", branch(listener, 1), branch(listener, 2))

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.run_workflow("middle", middle)

    instance = story.start()
    with shifts.running_shift():
        shifts.wait_until(lambda: Instance.objects.filter(workflow="listener", status="waiting").count() == 3)
        shifts.wait_for(instance, "waiting")
    instance.terminate(by="ada", reason="enough")
    [child] = children(instance)
    left = {one.is_tied: one.status for one in children(child)}
    assert (child.status, left) == ("terminated", {True: "terminated", False: "waiting"})
    assert nothing_is_owed()
    assert set(Audit.objects.filter(workflow="listener").values_list("verb", "reason")) == {
        ("terminate", f"Its parent middle/{child.id} is terminated.")
    }


def test_a_child_that_has_ended_before_its_parent_looks_is_found() -> None:
    """LC-35 (ours: without a restart): a parent whose worker died reads how its children ended meanwhile"""
    listener = listening()

    @workflow
    async def story(step: WorkflowStep) -> Any:
        first = asyncio.ensure_future(step.run_workflow("child", listener, None))
        await step.wait_for_event("join", timeout=None)
        return await first

    instance = story.start()
    with shifts.running_shift():
        child = one_child(instance)
        shifts.wait_for(instance, "waiting")
        instance.pause()
        child.send_event("go", 7)
        shifts.wait_for(child)
        crash()
        instance.resume()
        instance.send_event("join")
        shifts.wait_for(instance)
    assert (instance.output, len(children(instance))) == (7, 1)


def test_children_may_stand_twenty_deep_and_no_deeper() -> None:
    @workflow
    async def deeper(step: WorkflowStep, params: int) -> int:
        return 1 if params == 0 else 1 + await step.run_workflow("next", "deeper", params - 1)

    deep, too_deep = deeper.start(20), deeper.start(21)
    with running_shift():
        wait_for(deep)
        wait_for(too_deep)
    assert deep.output == 21
    assert too_deep.error["type"] == "ChildWorkflowError"
    last = Instance.objects.filter(workflow="deeper", depth=20).exclude(status="complete").get()
    assert last.error["type"] == LimitError.__name__
    assert not Instance.objects.filter(depth=21).exists()


def test_a_parents_attempts_are_not_the_childs() -> None:
    """A retry of the parent's own steps leaves a finished child alone."""
    double, tries = doubling(), list[int]()

    @workflow
    async def story(step: WorkflowStep) -> int:
        value = await step.run_workflow("child", double, 1)

        def flaky() -> int:
            tries.append(1)
            if len(tries) < 3:
                raise RuntimeError("once more")
            return value

        return await step.do("flaky", flaky, delay=0)

    instance = run_to_end(story.start())
    assert (instance.output, len(tries), len(children(instance))) == (2, 3, 1)


# spawn, wait_for_instance


def test_a_spawned_child_is_known_by_its_handle() -> None:
    double = doubling()

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        handle = await step.spawn("child", double, 4)
        result = await step.wait_for_instance("end", handle)
        assert isinstance(handle, Handle)
        assert isinstance(result, InstanceResult)
        assert (result.workflow, result.id) == (handle.workflow, handle.id)
        return [result.status, result.output, result.error]

    instance = run_to_end(story.start())
    assert instance.output == ["complete", 8, None]
    [child] = children(instance)
    assert (child.is_tied, child.depth) == (False, 1)


def test_waiting_for_an_instance_ends_however_that_ends() -> None:
    listener = listening()

    @workflow
    async def story(step: WorkflowStep, params: str) -> list[Any]:
        result = await step.wait_for_instance("end", workflow=listener, id=params)
        return [result.status, result.output, result.error and result.error.message]

    names = ["done", "failed", "stopped", "over"]
    others = {name: listener.start(None, id=name) for name in names}
    with shifts.running_shift():
        others["over"].send_event("go", "before")
        shifts.wait_for(others["over"])
        waiters = {name: story.start(name) for name in names}
        for name in names[:3]:
            assert shifts.wait_for(waiters[name], "waiting").waiting_for == "child"
        others["done"].send_event("go", [1])
        others["failed"].send_event("go", "fail")
        others["stopped"].terminate()
        found = {name: shifts.wait_for(one).output for name, one in waiters.items()}
        shifts.wait_until(nothing_is_owed, what="all being told")
        noted = Waiter.objects.filter(instance__in=list(others.values())[:3])
        shifts.wait_until(lambda: not noted.exists(), what="the notes being forgotten")
    assert found == {
        "done": ["complete", [1], None],
        "failed": ["errored", None, "told to"],
        "stopped": ["terminated", None, None],
        "over": ["complete", "before", None],
    }


def test_waiting_for_itself_for_nobody_or_for_too_long_is_refused() -> None:
    """KC-25"""
    listener = listening()

    @workflow
    async def story(step: WorkflowStep) -> str:
        with pytest.raises(StepConfigError, match="cannot wait for itself"):
            await step.wait_for_instance("self", workflow="story", id=step.instance_id)
        with pytest.raises(StepConfigError, match="Give what step"):
            await step.wait_for_instance("nothing")
        with pytest.raises(InstanceNotFoundError, match="nobody"):
            await step.wait_for_instance("nobody", workflow="story", id="nobody")
        handle = await step.spawn("slow", listener, None)
        try:
            await step.wait_for_instance("slow", handle, timeout=0.3)
        except InstanceTimeoutError as error:
            return str(error)
        return ""

    instance = run_to_end(story.start())
    assert instance.status == "complete", instance.error
    [child] = children(instance)
    assert instance.output == (
        f'Step "slow" waited 300 ms for instance "{child.id}" of workflow "listener" to end.'
    )
    assert [row[:2] + row[3:] for row in steps(instance)] == [
        ("child", "nobody", "errored"),
        ("child", "slow", "complete"),
        ("child", "slow", "errored"),
    ]


@pytest.mark.parametrize(("name", "id"), [("double", "no id!"), ("no name!", "one"), ("double", "x" * 101)])
def test_what_no_instance_can_be_called_is_refused_and_not_recorded(name: str, id: str) -> None:
    """The page of an instance links to what it waits for, and could not be rendered"""

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.wait_for_instance("end", workflow=name, id=id)

    instance = run_to_end(story.start())
    assert (instance.error["type"], steps(instance)) == ("InvalidNameError", [])


# parallel


def test_outputs_come_in_the_order_of_the_branches() -> None:
    listener = listening()

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        nothing = await step.parallel("nothing")
        return [nothing, await step.parallel("all", *(branch(listener, n) for n in range(3)))]

    instance = story.start()
    with running_shift():
        wait_until(lambda: len(children(instance)) == 3, what="the children")
        for child in reversed(children(instance)):
            child.send_event("go", [child.params])
            wait_for(child)
        wait_for(instance)
    assert instance.output == [[], [[0], [1], [2]]]
    assert steps(instance) == [
        ("parallel", "nothing", 1, "complete"),
        ("parallel", "all", 1, "complete"),
        *(("child", "all", n, "complete") for n in (1, 2, 3)),
    ]


@pytest.mark.parametrize("on_failure", ["leave", "terminate"])
def test_the_first_failure_by_the_clock_raises_at_once(on_failure: Any) -> None:
    """LC-31"""
    listener = listening()

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        try:
            await step.parallel(
                "both", branch(listener, "slow"), branch(listener, "bad"), on_failure=on_failure
            )
        except ChildWorkflowError as error:
            return [error.index, error.workflow, error.error and error.error.message, str(error)]
        return []

    instance = story.start()
    with running_shift():
        wait_until(lambda: len(children(instance)) == 2, what="the children")
        slow, bad = children(instance)
        bad.send_event("go", "fail")
        wait_for(instance)
        if on_failure == "terminate":
            wait_for(slow)
        wait_until(nothing_is_owed, what="all being settled")
    assert instance.output[:3] == [1, "listener", "told to"]
    assert f'Branch 1, child "{bad.id}"' in instance.output[3]
    assert slow.refresh().status == {"leave": "waiting", "terminate": "terminated"}[on_failure]
    if on_failure == "leave":  # also when its parent is terminated afterwards
        assert [row[3] for row in steps(instance)] == ["errored", "cancelled", "errored"]


def test_what_was_complete_when_another_failed_is_compensated_once_last_first() -> None:
    """LC-32"""
    listener = listening()
    turns: list[int] = []

    @workflow
    async def undo(step: WorkflowStep, params: dict[str, Any]) -> None:
        await step.do("undo", lambda: None)

    @workflow
    async def story(step: WorkflowStep) -> str:
        turns.append(1)
        try:
            await step.parallel("all", *(branch(listener, n, compensate_with=undo) for n in range(4)))
        except ChildWorkflowError as error:
            await step.sleep("nap", 0.3)
            return str(error.index)
        return ""

    instance = story.start()
    with running_shift():
        wait_until(lambda: len(children(instance)) == 4, what="the children")
        branches = children(instance)
        for index in (0, 2):
            branches[index].send_event("go", f"done {index}")
            wait_for(branches[index])
        branches[1].send_event("go", "fail")
        wait_for(instance)
        undone = list(Instance.objects.filter(workflow="undo").order_by("key"))
        for one in undone:
            wait_for(one)
    assert (instance.output, len(turns) > 2) == ("1", True)
    assert [(one.params["branch"], one.params["index"], one.params["output"]) for one in undone] == [
        ("listener", 2, "done 2"),
        ("listener", 0, "done 0"),
    ]
    assert undone[0].params["error"]["message"] == "told to"
    assert [one.is_tied for one in undone] == [False, False]


def test_a_compensation_that_takes_other_params_does_not_hide_the_failure() -> None:
    listener, double = listening(), doubling()

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.parallel("all", branch(listener, 0, compensate_with=double), branch(listener, 1))

    instance = story.start()
    with running_shift():
        wait_until(lambda: len(children(instance)) == 2, what="the children")
        good, bad = children(instance)
        good.send_event("go", 1)
        wait_for(good)
        bad.send_event("go", "fail")
        wait_for(instance)
    assert instance.error["type"] == "ChildWorkflowError"
    assert step(instance, "reprise:compensate").error["type"] == "InvalidParamsError"


def test_a_hundred_branches_and_not_one_more() -> None:
    """LC-28"""
    double = doubling()

    @workflow
    async def story(step: WorkflowStep) -> int:
        with pytest.raises(LimitError, match="101; the limit is 100"):
            await step.parallel("many", *(branch(double, n) for n in range(101)))
        return sum(await step.parallel("many", *(branch(double, n) for n in range(100))))

    instance = run_to_end(story.start())
    assert instance.output == 9900
    assert len(children(instance)) == 100


def test_two_branches_of_one_workflow_are_two_instances() -> None:
    """LC-29 (ours: ids derive from the place; users do not choose them)"""
    double = doubling()

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        return await step.parallel("same", branch(double, 1), branch(double, 1))

    instance = run_to_end(story.start())
    assert (instance.output, len({child.id for child in children(instance)})) == ([2, 2], 2)


def test_an_output_that_is_too_large_fails_the_branch_at_once() -> None:
    listener = listening()

    @workflow
    async def huge(step: WorkflowStep) -> str:
        return "x" * (1024 * 1024)

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.parallel("both", branch(huge), branch(listener))

    instance = run_to_end(story.start())
    assert instance.error["details"]["index"] == 0
    assert "limit is 1,048,576" in instance.error["message"]


def test_large_params_and_outputs_arrive_whole() -> None:
    @workflow
    async def echo(step: WorkflowStep, params: str) -> str:
        return params

    @workflow
    async def story(step: WorkflowStep) -> bool:
        sent = "é" * 200_000
        return await step.run_workflow("child", echo, sent) == sent

    assert run_to_end(story.start()).output is True
