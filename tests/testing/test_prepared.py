"""What a test prepares takes effect at its step: mocks, timeouts, events, answers, crashes. Mistakes raise errors."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine import (
    EventTimeoutError,
    NonRetryableError,
    StepContext,
    StepError,
    WorkflowStep,
    define_step,
    workflow,
)
from engine.testing import (
    NotCompleteError,
    NotFinishedError,
    UnusedError,
    WorkflowTestError,
    workflow_test,
)
from engine.values.errors import InstanceFinishedError, RequestTimeoutError


class Declined(Exception):
    """Raised by a bank."""


def real() -> str:
    return "real"


@workflow(name="order-of-tests")
async def order(step: WorkflowStep) -> str:
    return await step.do("charge", real, delay="1h")


async def twice(step: WorkflowStep) -> list[str]:
    return [await step.do("charge", real), await step.do("charge", real)]


@pytest.fixture(autouse=True)
def _known(own_registry: None) -> None:
    """What a test declares is gone after it."""


# Mocks


def test_mocks_of_a_step_are_used_in_their_order_and_then_the_body_runs() -> None:
    with workflow_test(order) as test:
        test.mock("charge", error=Declined("no money"), times=2)
        test.mock("charge", call=lambda ctx: f"attempt {ctx.attempt}", times=1)
        assert test.run().output == "attempt 3"
        kept = test.attempts("charge")[0].error
        assert kept is not None
        assert (kept["type"], kept["message"]) == ("Declined", "no money")
        assert test.run(None).output == "real"


def test_a_mock_is_for_a_name_a_count_a_kind_or_a_place() -> None:
    async def outer(step: WorkflowStep) -> str:
        return await step.do("charge", real)

    @workflow
    async def places(step: WorkflowStep) -> list[Any]:
        return [
            *await twice(step),
            await step.do("inside", outer, step),
            await step.map("each", [1, 2], lambda item, index: "real"),
            await step.run(payment, 3),
        ]

    @define_step(name="payment")
    def payment(amount: int) -> int:
        return amount

    with workflow_test(places) as test:
        test.mock("charge", result="within", inside="inside")
        test.mock(("charge", 2), result="second")
        test.mock(("each", 2), result="mocked")
        test.mock(payment, result=5)
        assert test.run().output == ["real", "second", "within", ["real", "mocked"], 5]


def test_a_mocked_result_is_held_to_the_type_of_the_step() -> None:
    @define_step
    def count() -> int:
        return 1

    @workflow
    async def counts(step: WorkflowStep) -> str:
        try:
            return f"{await step.run(count)}"
        except StepError as error:
            return error.message

    with workflow_test(counts) as test:
        test.mock("count", result="many")
        assert "count" in test.run().output
        assert "many" not in test.instance.output.split(":")[0]
        assert [one.status for one in test.attempts("count")] == ["errored"]
    with workflow_test(counts) as test:
        test.mock("count", result=object())
        assert test.run().output != "1"


def test_a_forced_timeout_fails_an_attempt_and_ends_a_wait(nothing_is_violated: None) -> None:
    @workflow
    async def waits(step: WorkflowStep) -> list[str]:
        found = [await step.do("charge", real, timeout="3m")]
        for wait in (
            step.wait_for_event("packed", timeout="3 days"),
            step.request("approve", bool, message="?", timeout="1 week"),
        ):
            try:
                await wait
            except (EventTimeoutError, RequestTimeoutError) as error:
                found.append(type(error).__name__)
        return found

    with workflow_test(waits, now=datetime(2030, 1, 1, tzinfo=UTC)) as test:
        test.force_timeout("charge", times=2)
        test.force_timeout("packed")
        assert [wait.name for wait in (test.run() and test.waits_for)] == ["approve"]
        assert [one.status for one in test.attempts("charge")] == ["timed_out", "timed_out", "complete"]
        test.force_timeout("approve")
        assert test.run_to_end().output == ["real", "EventTimeoutError", "RequestTimeoutError"]
        assert test.time.now() - datetime(2030, 1, 11, tzinfo=UTC) < timedelta(minutes=1)


def test_a_wait_without_a_timeout_cannot_be_forced_into_one() -> None:
    @workflow
    async def listens(step: WorkflowStep) -> None:
        await step.listen("news")

    with workflow_test(listens) as test:
        test.force_timeout("news", allow_unused=True)
        with pytest.raises(WorkflowTestError, match=r'Step "news" of listens/.* waits without a timeout'):
            test.run()


def test_wrong_mocks_are_refused_with_what_is_wrong() -> None:
    with workflow_test(order) as test:
        for arguments, rule in (
            ({"step": "charge"}, "pass one of result=, error= and call="),
            ({"step": "charge", "result": 1, "error": Declined}, "pass one of"),
            ({"step": "charge", "error": "no"}, "error= is 'no'; it must be an exception"),
            ({"step": "charge", "call": 1}, "must be a function"),
            ({"step": "charge", "result": 1, "times": 0}, "times= is 0"),
            ({"step": 5, "result": 1}, "5 is not a step"),
            ({"step": ("charge", 0), "result": 1}, "counted from 1"),
            ({"step": "charge", "result": 1, "kind": "doo"}, '"doo" is not a kind of step'),
        ):
            with pytest.raises(WorkflowTestError, match=rule):
                test.mock(**arguments)  # type: ignore[arg-type]
        test.mock("charge", result="x", allow_unused=True)
        with pytest.raises(WorkflowTestError, match="is already mocked for every call"):
            test.mock("charge", result="y")


def test_what_was_prepared_and_not_used_is_an_error_at_the_end() -> None:
    with pytest.raises(UnusedError) as raised, workflow_test(order) as test:  # noqa: PT012
        test.mock("chrage", result="misspelt")
        test.mock("charge", error=Declined, times=1)
        test.mock("charge", error=Declined, times=9, allow_unused=True)
        test.force_timeout(("charge", 2))
        test.crash_after("nowhere", attempt=2)
        test.answer("never asked", value=True)
        assert test.run().status == "errored"
    assert raised.value.unused == (
        'mock of "chrage"',
        'force_timeout of "charge", number 2 (used 0 of 1 times)',
        'crash_after("nowhere", attempt 2)',
        'answer to request "never asked"',
    )
    with workflow_test(order, allow_unused=True) as test:
        test.mock("chrage", result="misspelt")
    with pytest.raises(Declined), workflow_test(order) as test:  # noqa: PT012
        test.mock("chrage", result="misspelt")
        raise Declined


# Events and answers


def test_events_and_answers_are_given_before_while_and_after() -> None:
    @workflow
    async def packs(step: WorkflowStep) -> list[Any]:
        before = await step.wait_for_event("before")
        await step.do("pack", lambda: None)
        meanwhile = await step.wait_for_event("meanwhile")
        after = await step.wait_for_event("after")
        first = await step.request("first", bool, message="?")
        second = await step.request("second", int, message="?")
        return [
            before.payload,
            meanwhile.payload,
            after.payload,
            first.value,
            second.value,
            second.answered_by,
        ]

    with workflow_test(packs) as test:
        test.send_event("before", 1)
        test.answer("first", value=True)
        test.mock("pack", call=lambda: test.send_event("meanwhile", 2))
        assert test.run().status == "waiting"
        [wait] = test.waits_for
        assert (wait.kind, wait.name, wait.types) == ("event", "after", ("after",))
        test.send_event("after", 3, by="ana")
        assert test.run().status == "waiting"
        [wait] = test.waits_for
        assert (wait.kind, wait.name, wait.until) == ("request", "second", None)
        test.answer("second", 7, by="ben")
        assert test.run_to_end().output == [1, 2, 3, True, 7, "ben"]
        assert test.waits_for == []


def test_what_it_waits_for_is_told_with_what_to_do() -> None:
    @workflow
    async def asks(step: WorkflowStep) -> None:
        await asyncio.gather(
            step.request("approve", bool, message="?"),
            step.wait_for_event("packed", ["boxed", "bagged"], timeout="1d"),
        )

    @workflow
    async def parent(step: WorkflowStep) -> None:
        await step.run_workflow("ask", asks, None)

    with workflow_test(asks) as test:
        with pytest.raises(NotFinishedError) as raised:
            test.run_to_end()
        assert str(raised.value) == (
            f"Instance {test.instance} does not end: "
            'it waits for an answer to request "approve", and nobody gave one; '
            'it waits for event "boxed" or "bagged" in step "packed", and nobody sent one. '
            'Give one by test.answer("approve", …). '
            'Give it one by test.send_event("boxed", …), or let it time out by test.force_timeout("packed").'
        )
        test.instance.pause()
        with pytest.raises(NotFinishedError, match=r"it is paused: .* Call instance.resume\(\)"):
            test.run_to_end()
    with (
        workflow_test(parent) as test,
        pytest.raises(NotFinishedError, match=r'asks/[^ ]+ waits for an answer to request "approve"'),
    ):
        test.run_to_end()


# Time


def test_time_travels_and_what_is_due_on_the_way_is_done_at_its_time() -> None:
    @workflow
    async def reminds(step: WorkflowStep) -> list[int]:
        began, days = step.now(), []
        for _ in range(3):
            try:
                await step.wait_for_event("done", timeout="2 days")
            except EventTimeoutError:
                days.append((step.now() - began).days)
        return days

    with workflow_test(reminds) as test:
        assert test.run().status == "waiting"
        began = test.time.now()
        test.time.travel("3 days")
        assert (test.time.now() - began, len(test.steps("done"))) == (timedelta(days=3), 2)
        test.send_event("done")
        test.time.travel("1 day")
        test.time.travel_to(began + timedelta(days=5))
        assert test.run_to_end().output == [2, 5]
        with pytest.raises(WorkflowTestError, match="does not go back"):
            test.time.travel_to(began)


def test_tests_that_are_open_at_once_have_one_time() -> None:
    @workflow
    async def sleeps(step: WorkflowStep) -> None:
        await step.sleep("nap", "1 day")

    with workflow_test(sleeps) as outer:
        assert outer.run().status == "complete"
        with workflow_test(order) as inner:
            assert inner.run().output == "real"
            inner.time.travel("1 day")
            assert inner.time.now() == outer.time.now()
        with pytest.raises(WorkflowTestError, match="before the time of the enclosing test"):
            workflow_test(order, now=datetime(2020, 1, 1, tzinfo=UTC)).__enter__()
        with workflow_test(order, now=outer.time.now() + timedelta(days=1)) as inner:
            assert inner.run().output == "real"


def test_time_stands_still_where_it_is_to_be_moved_by_hand() -> None:
    @workflow(timeout="5 days")
    async def sleeps(step: WorkflowStep) -> str:
        await step.sleep("nap", "1 day")
        await step.listen("never")
        return "done"

    with workflow_test(sleeps, skips_time=False) as test:
        assert test.run().status == "waiting"
        assert [wait.name for wait in test.waits_for] == ["nap"]
        test.time.travel(86_400)
        assert [wait.name for wait in test.waits_for] == ["never"]
        test.time.travel("1 week")
        error = test.instance.refresh().error
        assert error is not None
        assert error["type"] == "WorkflowTimeoutError"


# Crashes


def test_a_worker_dies_before_and_after_a_body_and_another_goes_on() -> None:
    ran = []

    def charge(ctx: StepContext) -> int:
        ran.append((ctx.attempt, ctx.idempotency_key))
        return ctx.attempt

    @workflow
    async def charges(step: WorkflowStep) -> int:
        return await step.do("charge", charge)

    with workflow_test(charges) as test:
        test.crash_before("charge")
        test.crash_after("charge", attempt=2)
        assert test.run().output == 3
        assert [one.status for one in test.attempts("charge")] == ["lost", "lost", "complete"]
        assert test.crashes == ['crash_before("charge")', 'crash_after("charge", attempt 2)']
        test.mock("charge", error=ConnectionError, times=1)
        test.crash_after("charge", attempt=2)
        assert test.run(None).output == 3
        assert [one.status for one in test.attempts("charge")] == ["errored", "lost", "complete"]
    assert [attempt for attempt, _ in ran] == [2, 3, 2, 3]
    assert len({key for _, key in ran}) == 2  # instances


def test_a_worker_may_die_around_any_kind_of_step_and_the_story_is_the_same(
    nothing_is_violated: None,
) -> None:
    done = []

    @workflow
    async def child(step: WorkflowStep) -> str:
        await step.do("count", lambda: done.append("child"))
        return "grown"

    @workflow
    async def everything(step: WorkflowStep) -> list[Any]:
        await step.sleep("nap", "1h")
        event = await step.wait_for_event("news")
        asked = await step.request("ask", int, message="?")
        grown = await step.run_workflow("grow", child, None)
        each = await step.map("each", [1, 2, 3], lambda item, index: done.append(item) or item)
        return [event.payload, asked.value, grown, each]

    names = {"nap": "sleep", "news": "event", "ask": "request", "grow": "child", "each": "map"}
    with workflow_test(everything) as test:
        for name, kind in names.items():
            test.crash_before(name, kind=kind)
            test.crash_after(name, kind=kind)
        test.send_event("news", "of the world")
        test.answer("ask", 5)
        assert test.run_to_end().output == ["of the world", 5, "grown", [1, 2, 3]]
        assert len(test.crashes) == 2 * len(names)
    assert (done[:4], set(done)) == (
        ["child", 1, 2, 3],
        {"child", 1, 2, 3},
    )  # what was not recorded was done again


def test_a_worker_that_stays_down_is_followed_by_the_next_run() -> None:
    with workflow_test(order) as test:
        test.crash_after("charge", stay_down=True)
        instance = test.run()
        assert (instance.status, test.attempts("charge")[0].status) == ("running", "running")
        test.crash_before("charge", stay_down=True)
        with pytest.raises(NotFinishedError, match="its worker died by crash_before"):
            test.run_to_end()
        assert test.run_to_end().output == "real"
        assert [one.status for one in test.attempts("charge")] == ["lost", "lost", "complete"]


def test_a_crash_takes_down_all_that_its_worker_held(nothing_is_violated: None) -> None:
    @workflow
    async def both(step: WorkflowStep) -> list[str]:
        async def slow() -> str:
            await asyncio.sleep(60)
            return "slow"

        return list(await asyncio.gather(step.do("slow", slow), step.do("charge", real)))

    with workflow_test(both) as test:
        test.crash_after("charge")
        assert test.run().output == ["slow", "real"]
        assert [one.status for one in test.attempts("slow")] == ["lost", "complete"]


def test_what_a_finished_instance_was_not_given_is_told_at_the_end() -> None:
    with pytest.raises(UnusedError, match='answer to request "approve"'), workflow_test(order) as test:  # noqa: PT012
        test.answer("approve", value=True)
        assert test.run().output == "real"
    with workflow_test(order) as test:
        test.run()
        with pytest.raises(InstanceFinishedError):
            test.send_event("late")


def test_what_was_not_used_comes_with_how_the_instance_stands() -> None:
    def charge() -> None:
        raise NonRetryableError("no money")

    @workflow
    async def pays(step: WorkflowStep) -> None:
        await step.do("charge", charge)
        await step.wait_for_event("packed")
        await step.do("ship", str)

    with pytest.raises(UnusedError) as caught, workflow_test(pays) as test:  # noqa: PT012
        test.mock("ship", result="shipped")
        failed = test.run()
    assert str(caught.value) == (
        'Prepared and never used: mock of "ship". Correct it, or pass allow_unused=True if that is intended. '
        f'Instance {failed} is errored at step "charge": NonRetryableError: no money'
    )
    with pytest.raises(UnusedError, match='waits for event "packed"'), workflow_test(pays) as test:  # noqa: PT012
        test.mock("charge", result=None)
        test.mock("ship", result="shipped")
        test.run()
    with pytest.raises(UnusedError, match="No instance was started"), workflow_test(pays) as test:
        test.mock("ship", result="shipped")


def test_run_to_complete_shows_the_error_of_what_did_not_complete() -> None:
    @workflow
    async def story(step: WorkflowStep, number: int) -> str:
        if number < 0:
            await step.abort("below zero")
        if number == 0:
            raise LookupError("nothing there")
        return "done"

    with workflow_test(story) as test:
        assert test.run_to_complete(1).output == "done"
        with pytest.raises(NotCompleteError) as failed:
            test.run_to_complete(0)
        with pytest.raises(NotCompleteError, match="is terminated: Aborted: below zero"):
            test.run_to_complete(-1)
    assert "is errored: LookupError: nothing there\n\nTraceback (most recent call last):" in str(failed.value)
    assert failed.value.error is not None
    assert failed.value.error["type"] == "LookupError"
