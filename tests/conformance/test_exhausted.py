"""Steps that pause their instance when their attempts are used up: `on_exhausted="pause"`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from engine import (
    InstanceFinishedError,
    NonRetryableError,
    RollbackContext,
    StepConfigError,
    StepContext,
    StepError,
    StepExhaustedError,
    StepNotExhaustedError,
    WorkflowStep,
    define_step,
    workflow,
)
from engine.models import Attempt, Audit, Instance, Step
from tests import shifts
from tests.records import statuses, step
from tests.stories import run_to_end, running_shift, wait_for, wait_until
from tests.violations import violations

PAUSING: dict[str, Any] = {"max_attempts": 2, "delay": 0, "on_exhausted": "pause"}


@pytest.fixture(autouse=True)
def _verified() -> Iterator[None]:
    yield
    assert violations() == []


class Provider:
    """A service that can be down, and remembers the idempotency keys that it has seen."""

    def __init__(self) -> None:
        self.is_down = True
        self.keys: list[str] = []
        self.numbers: list[int] = []
        self.undone: list[str] = []

    def charge(self, ctx: StepContext) -> str:
        self.keys.append(ctx.idempotency_key)
        self.numbers.append(ctx.attempt)
        if self.is_down:
            raise ConnectionError("The provider is down.")
        return "charged"

    def undo(self, ctx: RollbackContext) -> None:
        self.undone.append(str(ctx.output))


def paused(instance: Instance) -> Instance:
    with running_shift():
        return wait_for(instance, "paused")


def audited(instance: Instance) -> list[tuple[str, str, str, str]]:
    rows = Audit.objects.filter(instance_id=instance.id).order_by("key")
    return list(rows.values_list("verb", "actor", "before", "after"))


def test_a_step_that_used_up_its_attempts_pauses_with_nothing_rolled_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.do("reserve", lambda: "reserved", rollback=provider.undo)
        return await step.do("charge", provider.charge, rollback=provider.undo, **PAUSING)

    def notices() -> list[str]:
        return [one for one in caplog.messages if one.startswith("The engine paused instance")]

    with running_shift():
        instance = wait_for(story.start(), "paused")
        wait_until(lambda: bool(notices()), what="the notice")  # logged after the commit
    charge = step(instance, "charge")
    assert (charge.status, charge.attempts, charge.wake_at, charge.finished_at) == ("waiting", 2, None, None)
    assert (charge.error["type"], charge.error["message"]) == ("ConnectionError", "The provider is down.")
    assert charge.options["on_exhausted"] == "pause"
    assert (instance.rollback, instance.error, instance.wake_at, provider.undone) == ("", None, None, [])
    assert instance.pause_reason["type"] == "StepExhaustedError"
    assert instance.pause_reason["message"] == (
        f'Instance "{instance.id}" of workflow "story" is paused: step "charge" used up its 2 attempts. '
        "Retry, skip or fail it; then the instance goes on."
    )
    (notice,) = notices()
    assert notice.endswith(f"StepExhaustedError: {instance.pause_reason['message']}")


def test_it_cannot_be_resumed_before_somebody_has_decided() -> None:
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.do("charge", provider.charge, **PAUSING)

    instance = paused(story.start())
    with pytest.raises(StepExhaustedError, match='step "charge" used up its 2 attempts') as refusal:
        instance.resume(by="ana")
    assert (refusal.value.steps, instance.refresh().status) == (["charge"], "paused")
    assert audited(instance) == []


def test_a_retry_gives_it_its_attempts_anew_with_the_same_key_and_in_the_same_generation() -> None:
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.do("charge", provider.charge, **PAUSING)

    instance = paused(story.start())
    instance.retry_step(by="ana", reason="it is back")
    assert (instance.status, instance.pause_reason, instance.generation) == ("queued", None, 1)
    assert paused(instance).pause_reason["type"] == "StepExhaustedError"  # two more attempts have failed
    assert provider.numbers == [1, 2, 3, 4]
    provider.is_down = False
    instance.retry_step(by="ana")
    run_to_end(instance)
    assert (instance.output, provider.numbers, len({*provider.keys})) == ("charged", [1, 2, 3, 4, 5], 1)
    assert audited(instance) == [("retry_step", "ana", "paused", "queued")] * 2
    entry = Audit.objects.filter(instance_key=instance.key).earliest("key")
    assert (entry.reason, entry.data) == ("it is back", {"steps": ["charge"], "total": 1})


def test_a_failed_step_gives_the_handler_its_last_error_and_rolls_back() -> None:
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.do("reserve", lambda: "reserved", rollback=provider.undo)
        return await step.do("charge", provider.charge, rollback=provider.undo, **PAUSING)

    instance = paused(story.start())
    instance.fail_step("charge", by="ana", reason="they do not want it")
    assert (instance.status, step(instance, "charge").status) == ("queued", "errored")
    run_to_end(instance)
    assert (instance.status, instance.error["type"], instance.error["attempts"]) == (
        "errored",
        "ConnectionError",
        2,
    )
    assert (instance.rollback, provider.undone, len(provider.keys)) == (
        "complete",
        ["None", "reserved"],
        2,
    )
    assert audited(instance) == [("fail_step", "ana", "paused", "queued")]
    assert step(instance, "charge").options["decision"] == {"outcome": "failed", "by": "ana"}


def test_a_failed_step_can_be_caught_and_every_replay_takes_the_same_turn() -> None:
    provider = Provider()
    caught: list[tuple[str, int]] = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        try:
            await step.do("charge", provider.charge, **PAUSING)
        except StepError as error:
            caught.append((error.type, error.attempts))
        await step.listen("go")
        return await step.do("invoice", lambda: "sent")

    instance = paused(story.start())
    instance.fail_step("charge")
    with running_shift():
        wait_for(instance, "waiting")
        instance.send_event("go")
        wait_for(instance)
    assert (instance.output, {*caught}) == ("sent", {("ConnectionError", 2)})
    assert step(instance, "charge").delivery == 1


def test_an_error_that_is_not_retried_pauses_at_once() -> None:
    def refuse() -> None:
        raise NonRetryableError("declined")

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("charge", refuse, on_exhausted="pause")

    instance = paused(story.start())
    assert 'step "charge" used up its only attempt' in instance.pause_reason["message"]
    assert step(instance, "charge").error["message"] == "declined"


def test_a_value_that_cannot_be_stored_and_a_delay_function_that_fails_pause_too() -> None:
    def broken(ctx: StepContext, error: BaseException) -> float:
        raise ValueError("no delay")

    def fails() -> None:
        raise ConnectionError

    @workflow
    async def stores(step: WorkflowStep) -> None:
        await step.do("make", object, on_exhausted="pause")

    @workflow
    async def delays(step: WorkflowStep) -> None:
        await step.do("make", fails, delay=broken, on_exhausted="pause")

    assert step(paused(stores.start()), "make").error["type"] == "InvalidValueError"
    assert step(paused(delays.start()), "make").error["type"] == "DelayFunctionError"


def test_two_steps_side_by_side_are_decided_alone() -> None:
    left, right = Provider(), Provider()

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        once = {
            **PAUSING,
            "max_attempts": 1,
        }  # or the pause might come before the second attempt of the other
        both = step.do("left", left.charge, **once), step.do("right", right.charge, **once)
        return [str(one) for one in await asyncio.gather(*both, return_exceptions=True)]

    instance = paused(story.start())
    assert (len(left.keys), len(right.keys)) == (1, 1)
    assert instance.pause_reason["details"]["steps"] == ["left", "right"]
    instance.fail_step("right", by="ana")
    assert instance.status == "paused"
    with pytest.raises(StepExhaustedError, match='"left"'):
        instance.resume()
    with pytest.raises(StepNotExhaustedError, match='Those that wait for a decision: "left"'):
        instance.fail_step("right")
    left.is_down = False
    instance.retry_step("left", by="ben")
    assert instance.status == "queued"
    run_to_end(instance)
    assert instance.output == [
        "charged",
        'Step "right" failed after 1 attempt: ConnectionError: The provider is down.',
    ]
    assert audited(instance) == [
        ("fail_step", "ana", "paused", "paused"),
        ("retry_step", "ben", "paused", "queued"),
    ]
    assert len(right.keys) == 1


def test_without_a_name_a_retry_takes_all_that_wait_for_a_decision() -> None:
    left, right = Provider(), Provider()

    @workflow
    async def story(step: WorkflowStep) -> list[str]:
        once = {**PAUSING, "max_attempts": 1}
        return await asyncio.gather(
            step.do("left", left.charge, **once), step.do("right", right.charge, **once)
        )

    instance = paused(story.start())
    left.is_down = right.is_down = False
    instance.retry_step()
    run_to_end(instance)
    assert instance.output == ["charged", "charged"]


def test_items_of_a_map_pause_it_by_their_index() -> None:
    down = {1}

    def work(item: int, index: int) -> int:
        if item in down:
            raise ConnectionError(item)
        return item * 10

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        return await step.map("work", [0, 1, 2], work, **PAUSING)

    instance = paused(story.start())
    assert 'step "work[1]" used up its 2 attempts' in instance.pause_reason["message"]
    down.clear()
    instance.retry_step("work", 2)
    run_to_end(instance)
    assert instance.output == [0, 10, 20]


def test_a_failed_item_fails_its_map() -> None:
    def work(item: int, index: int) -> int:
        raise ConnectionError(item)

    @workflow
    async def story(step: WorkflowStep) -> list[int]:
        return await step.map("work", [7], work, **PAUSING)

    instance = paused(story.start())
    instance.fail_step("work")
    run_to_end(instance)
    assert (instance.status, instance.error["message"]) == ("errored", "7")


def test_the_option_comes_from_a_definition_and_from_the_defaults_of_a_workflow() -> None:
    @define_step(**PAUSING)
    def charge() -> None:
        raise ConnectionError

    def send() -> None:
        raise ConnectionError

    @workflow
    async def defined(step: WorkflowStep) -> None:
        await step.run(charge)

    @workflow(defaults=PAUSING)
    async def defaults(step: WorkflowStep) -> None:
        await step.do("send", send)

    @workflow(defaults=PAUSING)
    async def overridden(step: WorkflowStep) -> None:
        await step.do("send", send, on_exhausted="fail")

    assert paused(defined.start()).status == paused(defaults.start()).status == "paused"
    assert run_to_end(overridden.start()).status == "errored"
    with pytest.raises(StepConfigError, match='It must be "fail" or "pause"'):
        charge.using(on_exhausted="stop")  # type: ignore[arg-type]


def test_a_nested_step_leaves_it_to_the_step_around_it_and_is_retried_with_it() -> None:
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> str:
        async def outer() -> str:
            await step.do("first", lambda: "once")
            return await step.do("inner", provider.charge, **PAUSING)

        return await step.do("outer", outer, on_exhausted="pause", max_attempts=3, delay=0)

    instance = paused(story.start())
    assert statuses(instance) == {"outer": "waiting", "first": "complete", "inner": "errored"}
    provider.is_down = False
    instance.retry_step("outer")
    run_to_end(instance)
    assert (instance.output, len({*provider.keys}), provider.numbers) == ("charged", 1, [1, 2, 3])
    assert Attempt.objects.filter(instance=instance, step_seq=step(instance, "first").seq).count() == 1


def test_timers_stop_while_it_waits_for_a_decision() -> None:
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> list[Any]:
        return await asyncio.gather(step.do("charge", provider.charge, **PAUSING), step.sleep("nap", "1h"))

    instance = paused(story.start())
    ends = step(instance, "nap").wake_at
    Instance.objects.filter(key=instance.key).update(paused_at=instance.paused_at - timedelta(hours=5))
    instance.refresh()
    provider.is_down = False
    instance.retry_step()
    later = step(instance, "nap").wake_at
    assert ends is not None
    assert later is not None
    assert later - ends > timedelta(hours=5)


def test_a_person_who_paused_it_first_also_resumes_it() -> None:
    provider = Provider()
    asked = []

    @workflow
    async def story(step: WorkflowStep) -> str:
        def body(ctx: StepContext) -> str:
            if not asked:
                asked.append(Instance.objects.get(id=step.instance_id).pause(by="ben"))
            return provider.charge(ctx)

        return await step.do("charge", body, max_attempts=1, on_exhausted="pause")

    instance = paused(story.start())
    assert instance.pause_reason is None
    provider.is_down = False
    instance.retry_step(by="ana")
    assert instance.status == "paused"
    instance.resume(by="ben")
    run_to_end(instance)
    assert instance.output == "charged"


def test_it_can_be_restarted_and_terminated_with_and_without_rollbacks() -> None:
    provider = Provider()

    @workflow
    async def story(step: WorkflowStep) -> str:
        await step.do("reserve", lambda: "reserved", rollback=provider.undo)
        return await step.do("charge", provider.charge, **PAUSING)

    ended = paused(story.start()).terminate()
    assert (ended.status, step(ended, "charge").status, step(ended, "charge").error) == (
        "terminated",
        "cancelled",
        None,
    )
    with pytest.raises(InstanceFinishedError):
        ended.terminate()
    undone = paused(story.start())
    undone.terminate(rollback=True)
    run_to_end(undone)
    assert (undone.status, undone.rollback, provider.undone) == ("terminated", "complete", ["reserved"])
    again = paused(story.start())
    provider.is_down = False
    again.restart(from_step="charge")
    run_to_end(again)
    assert (again.output, again.generation) == ("charged", 2)


def test_what_does_not_wait_for_a_decision_is_refused() -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.listen("go")

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
    with pytest.raises(StepNotExhaustedError, match="No step of it waits for a decision"):
        instance.fail_step("go")
    with pytest.raises(StepNotExhaustedError, match='cannot retry step "go" #2'):
        instance.retry_step("go", 2)
    assert audited(instance) == []


class Beside:
    """An instance with a step that has used up its attempts beside a body that runs until it is let out."""

    def __init__(self) -> None:
        self.out = threading.Event()
        self.provider = Provider()
        self.undone: list[str] = []

    def start(self) -> Instance:
        @workflow
        async def story(step: WorkflowStep) -> list[Any]:
            await step.do("reserve", lambda: 1, rollback=lambda ctx: self.undone.append("reserve"))
            return await asyncio.gather(
                step.do("charge", self.provider.charge, **PAUSING),
                step.do("long", self.wait),
                step.listen("go"),
            )

        instance = story.start()
        shifts.wait_until(lambda: self.is_exhausted(instance), what="the used-up attempts")
        assert instance.refresh().status == "running"
        return instance

    def wait(self) -> str:
        assert self.out.wait(60)
        return "out"

    def is_exhausted(self, instance: Instance) -> bool:
        return Step.objects.filter(instance=instance, name="charge", error__isnull=False).exists()


def test_the_running_body_ends_first_and_nothing_is_decided_before() -> None:
    beside = Beside()
    with shifts.running_shift():
        instance = beside.start()
        for decide in (lambda: instance.retry_step("charge"), lambda: instance.fail_step("charge")):
            with pytest.raises(StepNotExhaustedError, match="is running, not paused yet"):
                decide()
        beside.out.set()
        shifts.wait_for(instance, "paused")
        assert step(instance, "long").status == "complete"
        instance.send_event("go")
        beside.provider.is_down = False
        instance.retry_step("charge")
        shifts.wait_for(instance)
    assert instance.status == "complete"


def test_events_and_a_withdrawn_pause_meanwhile_do_not_start_it_again() -> None:
    beside = Beside()
    with shifts.running_shift():
        instance = beside.start()
        instance.pause(by="ana")
        instance.send_event("go")
        instance.resume(by="ana")
        beside.out.set()
        shifts.wait_for(instance, "paused")
        assert instance.pause_reason["type"] == "StepExhaustedError"
        assert len(beside.provider.keys) == 2
        instance.skip_step("charge", output="x")
        shifts.wait_for(instance)
    assert instance.output[:2] == ["x", "out"]


def test_a_termination_meanwhile_ends_it_after_its_rollbacks() -> None:
    beside = Beside()
    with shifts.running_shift():
        instance = beside.start()
        instance.terminate(rollback=True)
        beside.out.set()
        shifts.wait_for(instance)
    assert (instance.status, instance.rollback, beside.undone) == ("terminated", "complete", ["reserve"])
    assert step(instance, "charge").status == "cancelled"


def test_a_pause_by_a_person_meanwhile_is_for_them_to_end() -> None:
    beside = Beside()
    with shifts.running_shift():
        instance = beside.start()
        instance.pause(by="ana")
        beside.out.set()
        shifts.wait_for(instance, "paused")
        assert instance.pause_reason is None
        instance.fail_step("charge")
        assert instance.status == "paused"
        instance.resume()
        shifts.wait_for(instance)
    assert instance.error["type"] == "ConnectionError"


def test_changed_code_is_accepted_first_and_the_decision_stays() -> None:
    provider = Provider()

    @workflow(on_code_change="pause")
    async def story(step: WorkflowStep) -> str:
        return await step.do("charge", provider.charge, **PAUSING)

    instance = paused(story.start())
    Instance.objects.filter(key=instance.key).update(code="earlier")
    provider.is_down = False
    instance.retry_step("charge")
    assert paused(instance).pause_reason["type"] == "CodeChangedError"
    instance.accept_code()
    run_to_end(instance)
    assert (instance.output, provider.numbers) == ("charged", [1, 2, 3])
