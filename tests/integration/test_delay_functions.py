"""Functions given as `delay`: their answer is used as it is, they are asked until they answer, and block nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from engine import NonRetryableError, StepContext, StepError, WorkflowStep, workflow
from engine.declare.registry import Workflow
from engine.models import Attempt, Instance, Step
from engine.replay.attempts import raised
from engine.values.errors import NonDeterminismError
from engine.worker import shift
from engine.worker.bodies import attempt, delays
from engine.worker.bodies.attempt import Bodies
from engine.worker.bodies.delays import Delays, NoAnswerError
from engine.worker.database.journal import Journal
from tests.faults.points import violations
from tests.hand.host import HandHost, answer, cycle_of, take
from tests.records import crash, lines, outcomes, step
from tests.shifts import run_to_end, running_shift, wait_for, wait_until
from tests.travel import skip_wait

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")


class Busy(Exception):
    def __init__(self, retry_after: float, *, where: str) -> None:
        super().__init__(f"{where} is busy")
        self.retry_after = retry_after


class OutOfStock(NonRetryableError):
    """What a delay function may return."""


@pytest.fixture(autouse=True)
def _nothing_is_violated(engine_db: None) -> Iterator[None]:
    yield
    assert violations() == []


def busy_once(ctx: StepContext) -> int:
    if ctx.attempt == 1:
        raise Busy(90, where="the bank")
    return ctx.attempt


class Gate:
    """Where a delay function waits, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[BaseException] = []
        self.opened = threading.Event()

    def ask(self, ctx: StepContext, error: BaseException) -> float:
        self.asked.append(error)
        assert self.opened.wait(60)
        return 90

    async def ask_async(self, ctx: StepContext, error: BaseException) -> float:
        self.asked.append(error)
        while not self.opened.is_set():
            await asyncio.sleep(0.005)
        return 90


@pytest.fixture
def gate() -> Iterator[Gate]:
    one = Gate()
    yield one
    one.opened.set()


class Kind:
    """A step, or a rollback, that backs off by a function, and what is recorded about it."""

    def __init__(self, phase: str) -> None:
        self.phase = phase

    def declare(
        self,
        delay: Callable[..., Any],
        body: Callable[..., Any] = busy_once,
        *,
        forward: Callable[..., Any] = str,
        **options: Any,
    ) -> Workflow[Any, Any]:
        @workflow
        async def story(step: WorkflowStep) -> Any:
            if self.phase == "do":
                return await step.do("pay", body, delay=delay, **options)
            await step.do("pay", forward, rollback=body, rollback_options={"delay": delay, **options})
            raise LookupError

        return story

    def start(self, delay: Callable[..., Any], *args: Any, **options: Any) -> Instance:
        return self.declare(delay, *args, **options).start()

    def attempts(self, instance: Instance) -> list[Attempt]:
        made = Attempt.objects.filter(instance=instance, generation=instance.generation, phase=self.phase)
        return list(made.order_by("number"))

    def statuses(self, instance: Instance) -> list[str]:
        return [one.status for one in self.attempts(instance)]

    def waits(self, instance: Instance) -> bool:
        """Return whether the instance is parked for the next attempt."""
        row = instance.refresh()
        return (row.status, row.waiting_for) == ("waiting", "retry")

    def delay(self, instance: Instance) -> timedelta:
        wait_until(lambda: self.waits(instance))
        ended = self.attempts(instance)[-1].finished_at
        return step(instance, "pay").wake_at - ended

    def is_to_be_asked(self, instance: Instance) -> bool:
        row = Step.objects.filter(instance=instance, name="pay").last()
        if row is None:
            return False
        state = row.status if self.phase == "do" else row.rollback
        return (state, row.wake_at) == ("waiting" if self.phase == "do" else "running", None)

    def has_succeeded(self, instance: Instance) -> bool:
        return (instance.status if self.phase == "do" else instance.rollback) == "complete"


@pytest.fixture(params=["do", "rollback"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return Kind(request.param)


# Its answer


def test_the_answer_is_taken_as_it_is(kind: Kind) -> None:
    """No back-off on top, no jitter, and no limit but that of all durations"""

    def fail(ctx: StepContext) -> None:
        raise ValueError("again")

    def say(ctx: StepContext, error: BaseException) -> str:
        return f"{ctx.attempt} days"

    seen = []
    instance = kind.start(say, fail, max_attempts=4, jitter=1.0, max_delay="1s")
    with running_shift():
        for number in range(1, 4):
            wait_until(lambda number=number: kind.statuses(instance) == ["errored"] * number)
            seen.append(kind.delay(instance))
            skip_wait(instance)
        wait_for(instance)
    assert seen == [timedelta(days=days) for days in (1, 2, 3)]


@pytest.mark.parametrize("says_itself", [False, True], ids=["the error itself", "another one"])
def test_it_may_end_the_attempts_with_the_error_of_the_step(kind: Kind, says_itself: bool) -> None:
    def stop(ctx: StepContext, error: BaseException) -> float:
        raise OutOfStock("none until May") if says_itself else error

    instance = run_to_end(kind.start(stop))
    [last] = kind.attempts(instance)
    assert (last.error["type"], last.error["message"]) == ("Busy", "the bank is busy")
    if kind.phase == "do":
        assert (instance.error["type"], instance.error["message"]) == ("Busy", "the bank is busy")
        assert instance.error["details"] == {"retry_after": 90}
    else:
        assert (instance.error["type"], instance.rollback) == ("LookupError", "failed")
    assert lines(instance) == ["The delay function ended the attempts: none until May"] * says_itself


# No thread, no answer


def test_it_needs_no_thread_that_a_body_has(kind: Kind, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "SYNC_BODIES", 2)
    monkeypatch.setattr(delays, "LIMIT_SECONDS", 0.5)

    async def fail_async(ctx: StepContext) -> int:
        return busy_once(ctx)

    async def forward() -> None:
        """A body that needs no thread."""

    @workflow
    async def occupied(step: WorkflowStep) -> None:
        await step.do("long", gate.opened.wait, 30)

    def no_time(ctx: StepContext, error: BaseException) -> float:
        return 0

    declared = kind.declare(no_time, fail_async, forward=forward)
    with running_shift():
        long = [occupied.start() for _ in range(2)]
        wait_until(lambda: Attempt.objects.filter(status="running").count() == 2)
        instance = declared.start()
        wait_for(instance)
        gate.opened.set()
        for one in long:
            wait_for(one)
    assert kind.has_succeeded(instance)
    assert kind.statuses(instance) == ["errored", "complete"]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_without_an_answer_in_time_the_default_delay_applies(
    kind: Kind, gate: Gate, monkeypatch: pytest.MonkeyPatch, is_async: bool
) -> None:
    monkeypatch.setattr(delays, "LIMIT_SECONDS", 0.1)
    instance = kind.start(gate.ask_async if is_async else gate.ask)
    with running_shift():
        delay = kind.delay(instance)
        wait_for(instance)
    assert (delay, len(gate.asked), kind.has_succeeded(instance)) == (timedelta(seconds=1), 1, True)
    assert lines(instance) == [
        "The delay function did not answer within 0.1 s, so the default delay applies."
    ]


def test_an_async_one_that_swallows_its_cancellation_is_not_waited_for_and_counts_as_what_never_returns(
    gate: Gate, bodies: list[Bodies], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delays, "LIMIT_SECONDS", 0.1)

    async def deaf(ctx: StepContext, error: BaseException) -> float:
        while not gate.opened.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return 1

    instance = Kind("do").start(deaf)
    with running_shift():
        wait_for(instance)
        assert bodies[0].overdue == ['the delay function of step "pay"']
        gate.opened.set()
        wait_until(lambda: bodies[0].overdue == [])
    assert outcomes(instance, "pay") == ["errored", "complete"]


# Asked


@pytest.fixture
async def asks(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(delays, "LIMIT_SECONDS", 0.05)
    monkeypatch.setattr(delays, "LOOK_AGAIN_SECONDS", 0.01)
    made = Delays(asyncio.get_running_loop(), None)  # type: ignore[arg-type]
    yield made
    made.stop()


async def test_what_it_waits_for_a_thread_does_not_count(
    asks: Delays, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delays, "LIMIT_SECONDS", 1.0)

    async def after(seconds: float) -> float:
        return (await asks.answer(lambda: time.sleep(seconds) or seconds)).total_seconds()

    answers = await asyncio.gather(*(after(0.4) for _ in range(3 * delays.THREADS)))
    assert answers == [0.4] * 3 * delays.THREADS


async def test_its_threads_count_as_stuck_while_it_hangs_and_then_nobody_waits_for_one(
    asks: Delays, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang() -> int:
        assert gate.opened.wait(60)
        return 1

    def never() -> int:
        raise AssertionError("there is no thread for it")

    hung = asyncio.gather(*(asks.answer(hang) for _ in range(delays.THREADS)), return_exceptions=True)
    await asyncio.sleep(0)
    behind = asyncio.ensure_future(asks.answer(never))
    assert [type(one) for one in await hung] == [NoAnswerError] * delays.THREADS
    with pytest.raises(NoAnswerError):
        await behind
    assert asks.threads.stuck == delays.THREADS
    monkeypatch.setattr(delays, "LIMIT_SECONDS", 3600)
    async with asyncio.timeout(60):
        with pytest.raises(NoAnswerError):
            await asks.answer(never)
    gate.opened.set()
    async with asyncio.timeout(60):
        while asks.threads.stuck:
            await asyncio.sleep(0.001)
    assert (await asks.answer(lambda: 3)).total_seconds() == 3
    assert asks.left == []


def test_it_leaves_no_connection_behind() -> None:
    sessions: list[int] = []

    def ask(ctx: StepContext, error: BaseException) -> float:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            sessions.append(cursor.fetchone()[0])
        return 0

    def is_closed() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE pid = ANY (%s)", [sessions])
            return bool(cursor.fetchone()[0] == 0)

    instance = Kind("do").start(ask)
    with running_shift():
        wait_for(instance)
        assert len(sessions) == 1
        wait_until(is_closed)


# Asked again


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_killed_while_it_is_asked_it_is_asked_again(kind: Kind, gate: Gate, is_async: bool) -> None:
    """With an error of the class that was raised, its text and its attributes"""
    instance = kind.start(gate.ask_async if is_async else gate.ask)
    with running_shift():
        wait_until(lambda: len(gate.asked) == 1 and kind.is_to_be_asked(instance))
        crash()
        wait_until(lambda: len(gate.asked) == 2)
        gate.opened.set()
        assert kind.delay(instance) == timedelta(seconds=90)
        skip_wait(instance)
        wait_for(instance)
    assert kind.has_succeeded(instance)
    assert kind.statuses(instance) == ["errored", "complete"]
    again = gate.asked[1]
    assert (type(again), str(again)) == (Busy, "the bank is busy")
    assert isinstance(again, Busy)
    assert again.retry_after == 90


def test_one_that_kills_its_worker_again_is_not_asked_a_third_time(kind: Kind, gate: Gate) -> None:
    """The default delay replaces its answer then: it would kill one worker after the other"""
    instance = kind.start(gate.ask, max_attempts=2)
    with running_shift():
        wait_until(lambda: len(gate.asked) == 1 and kind.is_to_be_asked(instance))
        crash()
        Instance.objects.filter(key=instance.key).update(quarantined=True)  # as after the death of a process
        wait_until(lambda: len(gate.asked) == 2)
        assert step(instance, "pay").wake_at is not None
        crash()
        wait_for(instance)
    assert (len(gate.asked), kind.has_succeeded(instance)) == (2, True)


def test_it_is_asked_once_the_failure_is_recorded(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is killed meanwhile does not lose an attempt."""
    seen: list[tuple[list[str], bool]] = []
    execute = Journal._execute

    async def execute_later(journal: Journal, batch: Any) -> Any:
        await asyncio.sleep(0.2)
        return await execute(journal, batch)

    monkeypatch.setattr(Journal, "_execute", execute_later)

    def ask(ctx: StepContext, error: BaseException) -> float:
        instance = Instance.objects.get(id=ctx.instance_id)
        seen.append((kind.statuses(instance), kind.is_to_be_asked(instance)))
        return 0

    instance = run_to_end(kind.start(ask))
    assert seen == [(["errored"], True)]
    assert kind.has_succeeded(instance)


def test_paused_while_it_is_asked_its_answer_counts_from_the_resume_on(kind: Kind, gate: Gate) -> None:
    instance = kind.start(gate.ask)
    with running_shift():
        wait_until(lambda: len(gate.asked) == 1)
        instance.pause()
        gate.opened.set()
        wait_for(instance, "paused")
        instance.resume()
        delay = kind.delay(instance)
        assert timedelta(seconds=90) <= delay < timedelta(seconds=120)
        skip_wait(instance)
        wait_for(instance)
    assert (len(gate.asked), kind.has_succeeded(instance)) == (1, True)


def test_drained_while_it_is_asked_the_next_worker_asks_again(
    kind: Kind, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shift, "GRACE_SECONDS", 0.1)
    instance = kind.start(gate.ask)
    with running_shift():
        wait_until(lambda: len(gate.asked) == 1)
    assert (instance.refresh().status, kind.is_to_be_asked(instance)) == ("queued", True)
    gate.opened.set()
    with running_shift():
        assert kind.delay(instance) == timedelta(seconds=90)
        skip_wait(instance)
        wait_for(instance)
    assert (len(gate.asked), kind.has_succeeded(instance)) == (2, True)


def test_restarted_while_it_is_asked_its_late_answer_concerns_nobody(kind: Kind, gate: Gate) -> None:
    instance = kind.start(gate.ask)
    with running_shift():
        wait_until(lambda: len(gate.asked) == 1)
        instance.restart()
        wait_until(lambda: len(gate.asked) == 2)
        gate.opened.set()
        wait_until(lambda: kind.waits(instance))
        skip_wait(instance)
        wait_for(instance)
    assert (instance.generation, kind.has_succeeded(instance)) == (2, True)


def test_a_nested_step_is_asked_again_too(gate: Gate) -> None:
    async def outer(step: WorkflowStep) -> int:
        return await step.do("pay", busy_once, delay=gate.ask)

    @workflow
    async def story(step: WorkflowStep) -> int:
        return await step.do("outer", outer, step)

    with running_shift():
        instance = story.start()
        wait_until(lambda: len(gate.asked) == 1)
        crash()
        wait_until(lambda: len(gate.asked) == 2)
        gate.ask = None  # type: ignore[assignment, method-assign]
        instance.terminate()
        gate.opened.set()
        wait_for(instance)
    assert isinstance(gate.asked[1], Busy)


def test_a_plain_delay_in_new_code_stands_for_the_function_that_was_asked(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shift, "GRACE_SECONDS", 0.1)
    options: dict[str, Any] = {"delay": gate.ask}

    @workflow
    async def story(step: WorkflowStep) -> int:
        return await step.do("pay", busy_once, **options)

    instance = story.start()
    with running_shift():
        wait_until(lambda: len(gate.asked) == 1)
    options["delay"] = "2 minutes"
    with running_shift():
        assert Kind("do").delay(instance) == timedelta(minutes=2)
        instance.terminate()
    assert len(gate.asked) == 1


class Slow(HandHost):
    """Delay functions never answer here."""

    def ask_delay(self, *args: Any) -> None:
        """Not yet."""


@pytest.mark.parametrize("how", ["stick", "give_back"])
def test_a_step_whose_delay_function_is_interrupted_waits_for_it_still(how: str) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("charge", str, delay=lambda ctx, error: 60)

    host = Slow()
    cycle = cycle_of(story, host)
    answer(cycle, take(cycle))
    operation, attempt = host.bodies["charge"]
    operation.settle(attempt, error=RuntimeError("once"))
    if how == "stick":
        cycle.pause_with_reason(NonDeterminismError("The code has changed.", recorded="", current=""))
    else:
        cycle.exit.release()
    cycle.advance()
    record = cycle.writes.steps[operation.record.seq]
    assert cycle.writes.leave is not None
    assert (record.status, record.wake_us) == ("waiting", None)
    operation.back_off(attempt, delay=timedelta(seconds=1))  # too late
    assert record.wake_us is None


def test_an_error_that_cannot_be_made_again_is_told_as_the_handler_would_see_it() -> None:
    class Local(Exception):
        """This one cannot be found in its module."""

    for error in (Local("here"), KeyError("k")):
        kept = f'{{"type": "{type(error).__name__}", "message": "m", "details": {{"a": 1}}, "attempts": 2}}'
        again = raised.again(raised.with_class(kept, error), "pay")
        if isinstance(error, Local):
            assert isinstance(again, StepError)
            assert (again.step, again.type, again.message, again.attempts) == ("pay", "Local", "m", 2)
            assert again.details == {"a": 1}
        else:
            assert (type(again), again.args, vars(again)) == (KeyError, ("m",), {"a": 1})
    assert isinstance(raised.again(None, "pay"), StepError)
