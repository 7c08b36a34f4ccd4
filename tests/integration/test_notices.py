"""What goes wrong is told once: a line in the log `reprise.instances` and a signal, after the commit."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from engine import NonRetryableError, RollbackContext, WorkflowStep, branch, signals, workflow, workflows
from engine.declare.registry import Workflow
from engine.models import Instance, Notice
from engine.worker import notices, side_thread
from tests.integration.rows import attempt_of, leased, row_of, step_of
from tests.integration.test_given_up import refusing_ends
from tests.shifts import running_shift, wait_for, wait_until

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")

LOG = "reprise.instances"


class Told:
    """Keeps what the receivers of all signals got."""

    def __init__(self) -> None:
        self.all: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, *, signal: signals.NoticeSignal, sender: Any, **arguments: Any) -> None:
        name = next(name for name, one in signals.SIGNALS.items() if one is signal)
        instance = arguments.pop("instance", None)
        status = None if instance is None else instance.status
        self.all.append((name, {**arguments, "sender": sender, "status": status}))

    def of(self, name: str) -> list[dict[str, Any]]:
        return [arguments for one, arguments in self.all if one == name]


@pytest.fixture(autouse=True)
def _nothing_connected() -> Iterator[None]:
    """Let the receivers that a test connects go with it."""
    yield
    for one in signals.SIGNALS.values():
        one.receivers = []


@pytest.fixture
def told() -> Told:
    told = Told()
    for one in signals.SIGNALS.values():
        one.connect(told, weak=False)
    return told


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(one.levelname, one.getMessage()) for one in caplog.records if one.name == LOG]


def wait_until_told() -> None:
    wait_until(lambda: not Notice.objects.exists(), what="telling")


def run_and_tell(instance: Instance) -> Instance:
    """Run a shift until the instance is finished, and what there is to tell of it was told."""
    with running_shift():
        wait_for(instance)
        wait_until_told()
    return instance


@pytest.fixture
def fails() -> Workflow[str, None]:
    @workflow
    async def fails(step: WorkflowStep, message: str) -> None:
        raise LookupError(message)

    return fails


def test_an_errored_instance_is_one_line_and_one_signal(
    fails: Workflow[str, None], told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    instance = fails.start("no such\ncard")
    with running_shift():
        wait_for(instance)
        wait_until_told()
    assert lines(caplog) == [("ERROR", f"Instance fails/{instance.id} failed: LookupError: no such card")]
    [record] = [one for one in caplog.records if one.name == LOG]
    assert (record.workflow, record.instance_id, record.error_type) == ("fails", instance.id, "LookupError")  # type: ignore[attr-defined]
    [(name, arguments)] = told.all
    assert name == "instance_errored"
    assert arguments.pop("notice_id") > 0
    assert arguments == {
        "sender": fails,
        "at": instance.refresh().finished_at,
        "workflow": "fails",
        "instance_id": instance.id,
        "generation": 1,
        "step": "",
        "error_type": "LookupError",
        "error_message": "no such\ncard",
        "status": "errored",
    }


def test_what_completes_or_is_terminated_is_not_told(told: Told, caplog: pytest.LogCaptureFixture) -> None:
    @workflow
    async def works(step: WorkflowStep) -> None:
        await step.do("work", str)

    @workflow
    async def waits(step: WorkflowStep) -> None:
        await step.listen("go")

    done, paused, terminated = works.start(), waits.start(), waits.start()
    with running_shift():
        wait_for(done)
        wait_for(paused, "waiting")
        wait_for(terminated, "waiting")
        paused.pause(by="ana")
        terminated.terminate(by="ana")
    assert not Notice.objects.exists()
    assert (lines(caplog), told.all) == ([], [])


def test_a_receiver_of_one_workflow_is_not_called_for_others(fails: Workflow[str, None], told: Told) -> None:
    @workflow
    async def other(step: WorkflowStep) -> None:
        raise ValueError

    only: list[str] = []
    signals.instance_errored.connect(
        lambda instance_id, **_: only.append(instance_id), sender=other, weak=False
    )
    one, another = fails.start("a"), other.start()
    with running_shift():
        wait_for(one)
        wait_for(another)
        wait_until_told()
    assert only == [another.id]
    assert sorted(one["workflow"] for one in told.of("instance_errored")) == ["fails", "other"]


def test_a_failed_rollback_is_told_besides_and_its_retry_is_told_only_if_it_fails(
    told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    is_mended: list[bool] = []

    def undo(ctx: RollbackContext) -> None:
        if not is_mended:
            raise NonRetryableError("no refund")

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("charge", str, rollback=undo)
        raise LookupError("original")

    instance = story.start()
    with running_shift():
        wait_for(instance)
        wait_until_told()
        for _ in range(2):
            instance.retry_rollback()
            wait_for(instance)
            wait_until_told()
            is_mended.append(True)
    failed = (
        f'The rollback of instance story/{instance.id} failed at step "charge": NonRetryableError: no refund'
    )
    assert sorted(lines(caplog)) == [
        ("ERROR", f"Instance story/{instance.id} failed: LookupError: original"),
        ("ERROR", failed),
        ("ERROR", failed),
    ]
    assert instance.rollback == "complete"
    assert [name for name, _ in told.all].count("instance_errored") == 1
    first, again = told.of("rollback_failed")
    assert (first["step"], first["error_message"], first["status"]) == ("charge", "no refund", "errored")
    assert first["notice_id"] != again["notice_id"]


def test_a_restarted_instance_that_fails_again_is_told_again(fails: Workflow[str, None], told: Told) -> None:
    instance = fails.start("no")
    with running_shift():
        wait_for(instance)
        wait_until_told()
        instance.restart()
        wait_for(instance)
        wait_until_told()
    assert [one["generation"] for one in told.of("instance_errored")] == [1, 2]


def test_a_rollback_that_a_termination_cuts_off_is_told(told: Told) -> None:
    def undo(ctx: RollbackContext) -> None:
        raise ConnectionError("away")

    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("charge", str, rollback=undo, rollback_options={"delay": "1h", "max_delay": "1h"})
        raise LookupError("original")

    instance = story.start()
    with running_shift():
        wait_for(instance, "waiting")
        instance.terminate(by="ana")
        wait_until_told()
    [arguments] = told.of("rollback_failed")
    assert (arguments["step"], arguments["status"]) == ("charge", "terminated")
    assert told.of("instance_errored") == []


def test_a_pause_by_the_engine_is_told_and_one_by_people_is_not(
    told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    @workflow
    async def story(step: WorkflowStep) -> None:
        await step.do("work", str)

    instance, other = story.start(), story.start()
    other.pause(by="ana")
    with running_shift():
        with refusing_ends():
            wait_for(instance, "paused")
        wait_until_told()
        instance.terminate()
        other.resume()
        wait_for(other)
    [arguments] = told.of("instance_paused")
    assert (arguments["instance_id"], arguments["error_type"]) == (instance.id, "GivenUpError")
    [paused, lost] = lines(caplog)
    assert paused[0] == "ERROR"
    assert paused[1].startswith(f"The engine paused instance story/{instance.id}: GivenUpError: What this")
    # What came of the attempt could not be recorded either.
    told_of_loss = (
        f'Attempt 1 of step "work" of instance story/{instance.id} was lost: worker test died, or lost'
    )
    assert (lost[0], lost[1].startswith(told_of_loss)) == ("WARNING", True)


def test_code_that_does_not_fit_the_record_is_told_as_a_pause(told: Told) -> None:
    @workflow
    async def story(step: WorkflowStep, params: int) -> None:
        await step.listen("go")

    instance = story.start(1)
    with running_shift():
        wait_for(instance, "waiting")
    workflows._workflows.pop("story")

    @workflow(name="story")
    async def changed(step: WorkflowStep, params: dict[str, int]) -> None:
        await step.listen("go")

    instance.send_event("go")
    with running_shift():
        wait_for(instance, "paused")
        wait_until_told()
        instance.pause(by="ana")  # it is paused already
        instance.resume(by="ana")
        wait_for(instance, "paused")
        wait_until_told()
    assert [one["error_type"] for one in told.of("instance_paused")] == ["NonDeterminismError"] * 2


def test_an_instance_that_is_gone_is_not_there_for_receivers(
    told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    Notice.objects.create(
        kind="instance_errored", at=timezone.now() - timedelta(minutes=1), workflow="story", instance_key=0
    )
    only: list[str] = []
    signals.instance_errored.connect(lambda workflow, **_: only.append(workflow), weak=False)
    with running_shift():
        wait_until_told()
    assert (told.all, only) == ([], ["story"])  # the first one has looked at it
    assert "DoesNotExist" in caplog.text


def test_a_lost_attempt_is_a_warning(told: Told, caplog: pytest.LogCaptureFixture) -> None:
    @workflow
    async def story(step: WorkflowStep) -> str:
        return await step.do("s1", str, "done")

    instance = row_of(workflow="story", started_at=timezone.now(), fence=1)
    step_of(instance, attempts=1, options={"max_attempts": 5})
    attempt_of(instance, worker="host-3")
    leased(instance)
    with running_shift():
        wait_for(instance)
        wait_until_told()
    expected = (
        'Attempt 1 of step "s1" of instance story/one was lost: worker host-3 died, or lost the instance'
    )
    assert lines(caplog) == [("WARNING", expected)]
    [arguments] = told.of("attempt_lost")
    facts = {name: arguments[name] for name in ("step", "count", "attempt", "phase", "worker")}
    assert facts == {"step": "s1", "count": 1, "attempt": 1, "phase": "do", "worker": "host-3"}


def test_a_retired_worker_is_a_warning(told: Told, caplog: pytest.LogCaptureFixture) -> None:
    notices.worker_retired("host-3", "All of its 16 threads hang.")
    with running_shift():
        wait_until_told()
    assert lines(caplog) == [("WARNING", "Worker host-3 was retired: All of its 16 threads hang.")]
    [arguments] = told.of("worker_retired")
    assert (arguments["worker"], arguments["reason"]) == ("host-3", "All of its 16 threads hang.")


def test_what_a_sensitive_step_says_is_never_told(told: Told, caplog: pytest.LogCaptureFixture) -> None:
    def leaks(ctx: RollbackContext | None = None) -> None:
        raise NonRetryableError("bad token s3cr3t")

    @workflow
    async def story(step: WorkflowStep) -> None:
        try:
            await step.do("token", leaks, sensitive=True, rollback=leaks)
        except Exception as error:
            raise ValueError(f"It failed: {error}") from error

    instance = run_and_tell(story.start())
    assert "s3cr3t" in instance.error["message"]  # or the test shows nothing
    assert "s3cr3t" not in f"{lines(caplog)} {told.all}"
    assert {one["error_type"] for _, one in told.all} == {"ValueError", "NonRetryableError"}
    assert {one["error_message"] for _, one in told.all} == {'(not shown: step "token" is sensitive)'}


async def _run_child(step: WorkflowStep, child: Workflow[None, None]) -> None:
    await step.run_workflow("child", child)


async def _run_branches(step: WorkflowStep, child: Workflow[None, None]) -> None:
    await step.parallel("children", branch(child))


async def _wait_for_spawned(step: WorkflowStep, child: Workflow[None, None]) -> None:
    handle = await step.spawn("child", child)
    result = await step.wait_for_instance("end", handle)
    raise ValueError(f"It failed: {result.error}")


@pytest.mark.parametrize("call", [_run_child, _run_branches, _wait_for_spawned])
def test_what_a_sensitive_step_says_is_not_told_of_those_who_waited_for_its_instance_either(
    call: Callable[[WorkflowStep, Workflow[None, None]], Awaitable[None]],
    told: Told,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def leaks() -> None:
        raise NonRetryableError("bad token s3cr3t")

    @workflow
    async def child(step: WorkflowStep) -> None:
        await step.do("token", leaks, sensitive=True)

    @workflow
    async def parent(step: WorkflowStep) -> None:
        await call(step, child)

    @workflow
    async def grandparent(step: WorkflowStep) -> None:
        await step.run_workflow("parent", parent)

    instance = run_and_tell(grandparent.start())
    leaf = Instance.objects.get(workflow="child")
    assert "s3cr3t" in instance.error["message"]  # or the test shows nothing
    assert "s3cr3t" not in f"{lines(caplog)} {told.all}"
    hidden = f'(not shown: step "token" of instance child/{leaf.id} is sensitive)'
    assert {one["workflow"]: one["error_message"] for one in told.of("instance_errored")} == {
        "child": '(not shown: step "token" is sensitive)',
        "parent": hidden,
        "grandparent": hidden,
    }


def test_the_error_of_a_child_is_told_where_none_of_its_sensitive_steps_failed(told: Told) -> None:
    @workflow
    async def child(step: WorkflowStep) -> None:
        await step.do("token", str, sensitive=True)
        raise LookupError("no such card")

    @workflow
    async def parent(step: WorkflowStep) -> None:
        await step.run_workflow("child", child)

    run_and_tell(parent.start())
    [message] = [one["error_message"] for one in told.of("instance_errored") if one["workflow"] == "parent"]
    assert message.endswith("is errored: LookupError: no such card")


def test_a_receiver_that_raises_keeps_nobody_from_theirs(
    fails: Workflow[str, None], caplog: pytest.LogCaptureFixture
) -> None:
    def raises(**_: Any) -> None:
        raise SystemExit("a receiver's own")

    signals.instance_errored.connect(raises)
    told = Told()
    signals.instance_errored.connect(told, weak=False)
    instances = [fails.start("no"), fails.start("no")]
    with running_shift():
        for instance in instances:
            wait_for(instance)
        wait_until_told()
    assert sorted(one["instance_id"] for one in told.of("instance_errored")) == sorted(
        one.id for one in instances
    )
    problems = [one for one in caplog.records if one.name == "engine.notices"]
    assert [one.levelname for one in problems] == ["ERROR", "ERROR"]
    assert all("raises" in one.getMessage() for one in problems)


def test_a_line_that_the_log_refuses_keeps_no_other_from_it(
    fails: Workflow[str, None], told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    refused = fails.start("no")

    def refuses(record: logging.LogRecord) -> bool:
        if getattr(record, "instance_id", None) == refused.id:
            raise TypeError("a filter's own")
        return True

    others = [fails.start("no") for _ in range(3)]
    log = logging.getLogger(LOG)
    log.addFilter(refuses)
    try:
        with running_shift():
            for one in (refused, *others):
                wait_for(one)
            wait_until_told()
    finally:
        log.removeFilter(refuses)
    assert sorted(lines(caplog)) == sorted(
        ("ERROR", f"Instance fails/{one.id} failed: LookupError: no") for one in others
    )
    assert len(told.of("instance_errored")) == 4
    [problem] = [one for one in caplog.records if one.name == "engine.notices"]
    assert "could not be written to the log" in problem.getMessage()
    assert "a filter's own" in caplog.text


class HangingHandler(logging.Handler):
    """Holds each line, and with it the lock that logging takes for its handlers, until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()
        self.is_called = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.is_called.set()
        self.go_on.wait(60)


@contextmanager
def hanging_log() -> Iterator[HangingHandler]:
    handler = HangingHandler()
    logs = [logging.getLogger(name) for name in (LOG, "engine.notices")]
    for one in logs:
        one.addHandler(handler)
    try:
        yield handler
    finally:
        handler.go_on.set()
        for one in logs:
            one.removeHandler(handler)


def test_a_log_that_hangs_delays_no_instance_and_is_given_no_more_lines(
    fails: Workflow[str, None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(side_thread, "SLOW_SECONDS", 0.05)
    monkeypatch.setattr(side_thread, "PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(notices, "LOOK_SECONDS", 0.1)

    @workflow
    async def works(step: WorkflowStep) -> None:
        await step.do("work", str)

    with running_shift(), hanging_log() as handler:
        first = fails.start("no")
        assert handler.is_called.wait(60)
        time.sleep(0.2)  # its patience is over
        later = fails.start("no")
        wait_for(later)
        wait_for(works.start())
        time.sleep(0.3)  # it has looked again
        taken = Notice.objects.filter(taken_until__isnull=False)
        assert [one.instance_id for one in taken] == [first.id]
        handler.go_on.set()
        wait_until(lambda: later.id in caplog.text, what="the line of the later one")
    assert "has not returned after 0.1 s and is abandoned" in caplog.text


def test_an_async_receiver_is_called_and_may_use_the_database(fails: Workflow[str, None]) -> None:
    seen: list[int] = []

    async def receives(instance: Instance, **_: Any) -> None:
        seen.append(await Instance.objects.filter(key=instance.pk, status="errored").acount())

    signals.instance_errored.connect(receives)
    instance = fails.start("no")
    with running_shift():
        wait_for(instance)
        wait_until_told()
    assert seen == [1]


def test_a_receiver_that_hangs_delays_no_instance_and_no_line_and_is_named(
    fails: Workflow[str, None], caplog: pytest.LogCaptureFixture
) -> None:
    go_on = threading.Event()

    def hangs(**_: Any) -> None:
        go_on.wait(60)

    @workflow
    async def works(step: WorkflowStep) -> None:
        await step.do("work", str)

    signals.instance_errored.connect(hangs)
    told = Told()
    signals.instance_errored.connect(told, weak=False)
    with running_shift():
        failed = [fails.start("no") for _ in range(3)]
        wait_until(lambda: len(lines(caplog)) == 3, what="three lines")
        began = time.monotonic()
        wait_for(works.start())
        assert time.monotonic() - began < 20  # the receiver takes 60
        wait_until(lambda: "hangs, called with" in caplog.text, what="a line that names it")
        assert told.all == []
        go_on.set()
        wait_until_told()
    assert len(told.of("instance_errored")) == len(failed)


class Hangs:
    """Receives by a function or by a method, and does not return until it may."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.called: list[str] = []
        self.threads: list[threading.Thread] = []

    def method(self, instance_id: str, **_: Any) -> None:
        self.called.append(instance_id)
        self.threads.append(threading.current_thread())
        self.go_on.wait(60)

    def function(self) -> Callable[..., None]:
        return lambda **arguments: self.method(**arguments)


@pytest.mark.parametrize("is_method", [False, True])
def test_a_receiver_that_never_returns_is_left_behind(
    is_method: bool,
    fails: Workflow[str, None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(side_thread, "SLOW_SECONDS", 0.05)
    monkeypatch.setattr(side_thread, "PATIENCE_SECONDS", 0.1)
    hangs = Hangs()
    receiver = hangs.method if is_method else hangs.function()
    signals.instance_errored.connect(receiver)
    told = Told()
    signals.instance_errored.connect(told, weak=False)
    first, second = fails.start("no"), fails.start("no")
    with running_shift():
        wait_for(first)
        wait_for(second)
        wait_until_told()
        assert len(hangs.called) == 1
        hangs.go_on.set()
        wait_until(lambda: not hangs.threads[0].is_alive(), what="the end of its thread")
        third = fails.start("no")
        wait_for(third)
        wait_until_told()
    assert hangs.called[1:] == [third.id]
    assert "is abandoned" in caplog.text
    assert "still hangs and was not called" in caplog.text
    assert len(told.of("instance_errored")) == 3


def test_what_a_dead_process_had_taken_is_told_by_another(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "LOOK_SECONDS", 0.05)
    values: dict[str, Any] = {"kind": "worker_retired", "at": timezone.now()}
    taken = Notice.objects.create(**values, worker="dead", taken_until=timezone.now() + timedelta(hours=1))
    with running_shift():
        for number in range(2):  # the second is taken by a look that begins after the first was told
            Notice.objects.create(**values, worker=f"witness {number}")
            wait_until(lambda: list(Notice.objects.all()) == [taken], what="telling the others")
        assert [one["worker"] for one in told.of("worker_retired")] == ["witness 0", "witness 1"]
        Notice.objects.filter(pk=taken.pk).update(taken_until=timezone.now())
        wait_until_told()
    assert [one["worker"] for one in told.of("worker_retired")][2:] == ["dead"]


def test_what_others_have_receivers_for_is_left_to_them_for_a_while(told: Told) -> None:
    """The workflow is not known here, so another process serves it."""
    values: dict[str, Any] = {"kind": "instance_errored", "workflow": "elsewhere", "instance_id": "a"}
    Notice.objects.create(**values, at=timezone.now() - timedelta(minutes=1))
    young = Notice.objects.create(**values, at=timezone.now())
    with running_shift():
        wait_until(lambda: Notice.objects.count() == 1, what="telling the old one")
    assert Notice.objects.get() == young
    [arguments] = told.of("instance_errored")
    assert arguments["sender"] is None


@pytest.mark.second_tier
def test_a_flood_is_told_line_by_line_and_delays_nobody(
    fails: Workflow[str, None], caplog: pytest.LogCaptureFixture
) -> None:
    count = 10_000

    @workflow
    async def works(step: WorkflowStep) -> None:
        await step.do("work", str)

    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO engine_instance (workflow, id, status, waiting_for, params, wake_at) "
            "SELECT 'fails', n::text, 'waiting', 'sleep', '\"no\"', clock_timestamp() + interval '1 hour' "
            "FROM generate_series(1, %s) n",
            [count],
        )
    caplog.set_level(logging.ERROR)
    with running_shift():
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE engine_instance "
                "SET status = 'errored', waiting_for = '', wake_at = NULL, finished_at = clock_timestamp(), "
                """error = '{"type": "LookupError", "message": "no"}'"""
            )
        began = time.monotonic()
        wait_for(works.start())
        assert time.monotonic() - began < 20
        wait_until_told()
    assert len(lines(caplog)) == len(set(lines(caplog))) == count
