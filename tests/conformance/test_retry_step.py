"""Retry the step that ended an instance, and restart with the same idempotency keys."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from engine import (
    ChildWorkflowError,
    InvalidValueError,
    KeysSpentError,
    RestartError,
    RollbackContext,
    StepContext,
    StepError,
    StepNotFailedError,
    WorkflowStep,
    workflow,
)
from engine.models import Attempt, Audit, Failure, Instance
from engine.restart import preview, preview_retry
from tests.conformance.test_restart_from_step import origins
from tests.stories import run_to_end

pytestmark = pytest.mark.usefixtures("nothing_is_violated")


class Provider:
    """A service that can be down, and remembers the idempotency keys that it has seen."""

    def __init__(self) -> None:
        self.is_down = True
        self.keys: list[str] = []
        self.undone: list[str] = []

    def charge(self, ctx: StepContext) -> str:
        self.keys.append(ctx.idempotency_key)
        if self.is_down:
            raise ConnectionError("The provider is down.")
        return "charged"

    def refund(self, ctx: RollbackContext) -> None:
        self.undone.append(ctx.idempotency_key)


def ended(instance: Instance) -> Instance:
    run_to_end(instance)
    return instance.refresh()


def test_a_retried_step_keeps_its_key_and_what_came_before_it() -> None:
    """Guarantee 14: retry of the step that failed, also when its attempts are used up"""
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        first = await step.do("reserve", lambda: "reserved")
        second = await step.do("charge", provider.charge, max_attempts=2, delay=0)
        return [first, second, await step.do("ship", lambda: "shipped")]

    instance = ended(story.start())
    assert (instance.status, len(provider.keys), len({*provider.keys})) == ("errored", 2, 1)
    plan = preview_retry(instance)
    assert [str(one) for one in plan.keeps] == ['do "reserve"']
    assert [str(one) for one in plan.runs_again] == ['do "charge"']
    assert (plan.generation, plan.refused, plan.keys_spent) == (2, "", "")
    provider.is_down = False
    instance.retry_step(by="ana", reason="it is back")
    assert (instance.status, instance.generation) == ("queued", 2)
    ended(instance)
    assert (instance.status, instance.output) == ("complete", ["reserved", "charged", "shipped"])
    assert origins(instance) == {"reserve": 1, "charge": 2, "ship": 2}
    assert (len(provider.keys), len({*provider.keys})) == (3, 1)
    entry = Audit.objects.get(instance_key=instance.key, verb="restart")
    assert (entry.actor, entry.reason) == ("ana", "it is back")
    assert entry.data == {
        "generation": 2,
        "from_step": "charge",
        "count": 1,
        "kind": "do",
        "kept": 1,
        "keys": "same",
        "is_retry": True,
    }


def test_a_retried_step_gets_all_its_attempts_and_can_fail_and_be_retried_again() -> None:
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.do("charge", provider.charge, max_attempts=2, delay=0)

    instance = ended(story.start())
    instance.retry_step()
    assert ended(instance).status == "errored"
    assert Attempt.objects.filter(instance=instance, generation=2).count() == 2
    instance.retry_step()
    provider.is_down = False
    assert ended(instance).output == "charged"
    assert (instance.generation, len({*provider.keys})) == (3, 1)


def test_a_later_restart_with_new_keys_has_keys_of_its_own() -> None:
    provider = Provider()
    provider.is_down = False

    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.do("charge", provider.charge)

    instance = ended(story.start())
    for keys in ("same", "new", "same"):
        instance.restart(keys=keys)
        ended(instance)
    first, second, third, fourth = provider.keys
    assert (first == second, third == fourth, first == third) == (True, True, False)


def test_an_outcome_that_the_handler_had_before_the_failure_is_kept_and_a_later_one_is_not() -> None:
    """Branches side by side: what was delivered before the failure is the past that the retry goes on from"""
    provider = Provider()
    runs: list[str] = []

    async def quick() -> str:
        runs.append("quick")
        return "quick"

    async def charge(ctx: StepContext) -> str:
        await asyncio.sleep(0.2)
        return provider.charge(ctx)

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        return list(
            await asyncio.gather(
                step.do("charge", charge, max_attempts=1),
                step.do("quick", quick),
            )
        )

    instance = ended(story.start())
    assert (instance.status, runs) == ("errored", ["quick"])
    provider.is_down = False
    instance.retry_step()
    assert ended(instance).output == ["charged", "quick"]
    assert (runs, len({*provider.keys})) == (["quick"], 1)
    assert origins(instance) == {"charge": 2, "quick": 1}


def test_a_failure_that_the_handler_caught_stays_as_it_was() -> None:
    provider = Provider()
    tries: list[int] = []

    def shaky() -> None:
        tries.append(1)
        raise ValueError("no")

    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            await step.do("shaky", shaky, max_attempts=1)
        except StepError:
            return await step.do("charge", provider.charge, max_attempts=1)
        return "?"

    instance = ended(story.start())
    provider.is_down = False
    instance.retry_step()
    assert ended(instance).output == "charged"
    assert (len(tries), len(provider.keys)) == (1, 2)


@pytest.mark.parametrize("returns_errors", [False, True])
def test_branches_that_failed_alike_all_run_again(returns_errors: bool) -> None:
    """A recorded failure of one of them would end the retry at once"""
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        charges = [step.do("charge", provider.charge, max_attempts=1) for _ in range(2)]
        found = await asyncio.gather(*charges, return_exceptions=returns_errors)
        for one in found:
            if isinstance(one, Exception):
                raise one
        return found

    instance = ended(story.start())
    began = len(provider.keys)  # one, if the first failure ended the handler before the other branch began
    assert began == 2 or not returns_errors
    provider.is_down = False
    instance.retry_step()
    assert ended(instance).output == ["charged", "charged"]
    assert (len(provider.keys) - began, len({*provider.keys})) == (2, 2)


def test_a_step_that_has_been_rolled_back_cannot_keep_its_key() -> None:
    """Guarantee 14: unless its rollback ran"""
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.do("charge", provider.charge, max_attempts=1, rollback=provider.refund)

    instance = ended(story.start())
    assert provider.undone
    plan = preview_retry(instance)
    assert "cannot run again with the same idempotency key: it has been rolled back" in plan.keys_spent
    for act in (instance.retry_step, lambda: instance.restart(keys="same")):
        with pytest.raises(KeysSpentError) as refused:
            act()
        assert str(refused.value) == plan.keys_spent
    assert (instance.refresh().status, instance.generation) == ("errored", 1)
    assert preview(instance).refused == ""
    instance.restart()
    assert instance.generation == 2


def test_a_step_is_not_retried_after_one_before_it_has_been_rolled_back() -> None:
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.do("reserve", lambda: None, rollback=provider.refund)
        return await step.do("charge", provider.charge, max_attempts=1)

    instance = ended(story.start())
    with pytest.raises(RestartError, match='step do "reserve", which is before it, has been rolled back'):
        instance.retry_step()
    assert instance.refresh().generation == 1


def test_an_instance_that_no_step_has_ended_has_none_to_retry() -> None:
    @workflow
    async def broken(step: WorkflowStep) -> None:
        await step.do("fine", lambda: None)
        raise ValueError("The handler itself.")

    instance = ended(broken.start())
    with pytest.raises(StepNotFailedError, match="is errored, but not because of a step"):
        instance.retry_step()
    with pytest.raises(StepNotFailedError):
        preview_retry(instance)
    waiting = broken.start()
    with pytest.raises(StepNotFailedError, match="is queued, not errored"):
        waiting.retry_step()
    assert Audit.objects.filter(verb="restart").count() == 0


def test_a_wait_that_timed_out_and_a_child_that_failed_can_be_retried() -> None:
    outcomes = ["fail", "work"]

    @workflow
    async def child(step: WorkflowStep) -> str:
        return await step.do(
            "work", lambda: outcomes.pop(0) if outcomes[0] == "work" else 1 / 0, max_attempts=1
        )

    @workflow
    async def parent(step: WorkflowStep) -> Any:
        await step.wait_for_event("go", timeout="1ms")
        return await step.run_workflow("child", child, None)

    instance = ended(parent.start())
    assert instance.error["type"] == "EventTimeoutError"
    instance.retry_step()
    instance.send_event("go")
    ended(instance)
    assert instance.error["type"] == ChildWorkflowError.__name__
    outcomes.pop(0)
    instance.retry_step()
    assert ended(instance).output == "work"
    assert origins(instance)["go"] == 2


@pytest.mark.parametrize("keys", ["old", "", None, 1])
def test_keys_are_new_or_the_same(keys: Any) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        pass

    instance = ended(story.start())
    with pytest.raises(InvalidValueError, match='It must be "new" or "same"'):
        instance.restart(keys=keys)
    assert instance.refresh().generation == 1


def test_a_key_from_before_a_restart_with_new_keys_is_not_replaced_unseen() -> None:
    """The step would run under a key of the later generation, so a service would do its work again"""
    provider = Provider()
    provider.is_down = False

    @workflow
    async def story(step: WorkflowStep) -> str:
        first = await step.do("charge", provider.charge)
        await step.do("ship", lambda: None)
        return first

    instance = ended(story.start())
    instance.restart("ship")
    ended(instance)
    with pytest.raises(KeysSpentError, match="it ran before a restart that made new keys"):
        instance.restart("charge", keys="same")
    instance.restart("ship", keys="same")
    ended(instance)
    assert (instance.generation, len(provider.keys)) == (3, 1)


def test_a_step_that_failed_in_a_task_group_is_retried() -> None:
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> str:
        first = await step.do("reserve", lambda: "reserved")
        async with asyncio.TaskGroup() as group:
            charged = group.create_task(step.do("charge", provider.charge, max_attempts=1))
        return f"{first} {charged.result()}"

    instance = ended(story.start())
    assert instance.error is not None
    assert (instance.error["type"], instance.error["step"]) == ("ExceptionGroup", "charge")
    raised = {"type": "ConnectionError", "message": "The provider is down."}
    assert instance.error["details"]["raised"] == raised
    assert {one.step for one in Failure.objects.filter(workflow=instance.workflow)} == {"charge"}
    provider.is_down = False
    instance.retry_step()
    assert ended(instance).output == "reserved charged"
    assert origins(instance) == {"reserve": 1, "charge": 2}
    assert len({*provider.keys}) == 1


def test_the_first_failure_of_nested_task_groups_is_retried_whatever_else_they_hold() -> None:
    is_down = True

    async def fail(why: str) -> str:
        if is_down:
            raise ConnectionError(why)
        return why

    @workflow
    async def story(step: WorkflowStep) -> str:
        with contextlib.suppress(StepError):
            await step.do("tried", fail, "tried", max_attempts=1)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(step.do("first", fail, "one", max_attempts=1))
        except ExceptionGroup as failed:
            try:
                await step.do("second", fail, "two", max_attempts=1)
            except StepError as error:
                raise ExceptionGroup("all", [ValueError("no step"), error, failed]) from None
        return "done"

    instance = ended(story.start())
    assert instance.error is not None
    assert (instance.error["step"], instance.error["details"]["raised"]["message"]) == ("first", "one")
    is_down = False
    instance.retry_step()
    assert ended(instance).output == "done"
    assert origins(instance) == {"tried": 1, "first": 2}
