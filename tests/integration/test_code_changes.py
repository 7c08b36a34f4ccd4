"""`on_code_change`: an instance that continues under other code than it started under (guarantee 4)."""

from __future__ import annotations

import asyncio
import io
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import F

from engine import (
    CodeChangedError,
    DeclarationError,
    InstanceFinishedError,
    RollbackContext,
    UnknownWorkflowError,
    WorkflowStep,
    workflow,
    workflows,
)
from engine.models import Audit, Instance, Log, Step
from engine.steer.clock import ClockTimestamp
from tests import shifts
from tests.records import lines, statuses, step
from tests.stories import run_to_end, running_shift, wait_for, wait_until
from tests.travel import skip_wait

pytestmark = pytest.mark.usefixtures("engine_db", "own_registry")

HALT = {"on_code_change": "pause"}


def deploy(handler: Any, **options: Any) -> Any:
    """Declare the workflow "story" again, as a deployment of other code does."""
    workflows._workflows.pop("story", None)
    return workflow(name="story", **options)(handler)


async def old(step: WorkflowStep) -> str:
    first = await step.do("first", lambda: "old")
    await step.wait_for_event("go")
    return first + await step.do("second", lambda: "-old")


async def new(step: WorkflowStep) -> str:
    first = await step.do("first", lambda: "new")
    await step.wait_for_event("go")
    return first + await step.do("other", lambda: "-new")


def parked(handler: Any = old, **options: Any) -> Instance:
    """Start an instance and let it reach its wait."""
    instance = deploy(handler, **options).start()
    with shifts.running_shift(name="before"):
        return shifts.wait_for(instance, "waiting")


def halted() -> Instance:
    """Continue an instance under other code."""
    instance = parked(**HALT)
    deploy(new, **HALT)
    instance.send_event("go")
    with shifts.running_shift(name="after"):
        return shifts.wait_for(instance, "paused")


def test_an_instance_goes_on_under_new_code_and_its_log_says_so_once() -> None:
    instance = parked()
    recorded = instance.code
    deploy(new)
    with running_shift():
        instance.pause()
        instance.resume()
        wait_for(instance, "waiting")
        instance.send_event("go")
        wait_for(instance)
    assert (instance.output, instance.error, instance.code) == ("old-new", None, recorded)
    [line] = Log.objects.filter(instance=instance)
    assert (line.level, line.fields) == (
        "warning",
        {"recorded": recorded, "current": workflows["story"].fingerprint},
    )
    assert line.message.startswith("The workflow's code has changed since this instance started")


def test_the_handlers_own_lines_are_kept_beside_what_is_said_of_its_code() -> None:
    async def talking(step: WorkflowStep) -> None:
        step.log.info("one")
        await step.wait_for_event("go")

    async def talking_more(step: WorkflowStep) -> None:
        step.log.info("one")
        await step.wait_for_event("go")
        step.log.info("two")

    instance = parked(talking)
    deploy(talking_more)
    instance.send_event("go")
    run_to_end(instance)
    assert [line.split()[0] for line in lines(instance)] == ["one", "The", "two"]


def test_the_same_code_is_nothing_to_speak_of() -> None:
    instance = parked(**HALT)
    deploy(old, **HALT)
    instance.send_event("go")
    assert (run_to_end(instance).output, lines(instance)) == ("old-old", [])


def test_an_instance_is_paused_before_any_step_of_the_new_code() -> None:
    instance = halted()
    error = instance.pause_reason
    assert error["type"] == CodeChangedError.__name__
    assert error["details"]["recorded"] == instance.code
    assert error["details"]["current"] == workflows["story"].fingerprint != instance.code
    assert instance.code in error["message"]
    assert workflows["story"].fingerprint in error["message"]
    assert statuses(instance) == {"first": "complete", "go": "waiting"}
    assert instance.events.get().state == "buffered"
    call_command("verify", stdout=io.StringIO())


def test_resuming_alone_does_not_let_new_code_in() -> None:
    instance = halted()
    with running_shift():
        signals = instance.resume().signals
        wait_until(lambda: instance.refresh().signals >= signals and instance.status == "paused")
    assert statuses(instance) == {"first": "complete", "go": "waiting"}


def test_accepting_the_code_resumes_the_instance_under_it() -> None:
    instance = halted()
    recorded = instance.code
    answer = instance.accept_code(by="ada", reason="looked at it")
    assert (answer.status, answer.error, answer.code) == ("queued", None, workflows["story"].fingerprint)
    assert run_to_end(instance).output == "old-new"
    assert lines(instance) == []
    trail = Audit.objects.get()
    assert (trail.verb, trail.actor, trail.reason) == ("accept_code", "ada", "looked at it")
    assert (trail.before, trail.after) == ("paused", "queued")
    assert trail.data == {"recorded": recorded, "current": instance.code}
    call_command("verify", stdout=io.StringIO())


def test_code_that_changes_again_is_accepted_again() -> None:
    async def newer(step: WorkflowStep) -> str:
        await step.wait_for_event("go")
        return "newer"

    instance = halted()
    instance.accept_code()
    deploy(newer, **HALT)
    with running_shift():
        wait_for(instance, "paused")
        instance.accept_code()
        assert wait_for(instance).output == "newer"


def test_a_deploy_of_the_old_code_brings_the_instance_on_by_itself() -> None:
    instance = halted()
    deploy(old, **HALT)
    assert run_to_end(instance).output == "old-old"
    trail = Audit.objects.get()
    assert (trail.verb, trail.actor, trail.before, trail.after) == ("resume", "", "paused", "queued")
    assert trail.reason == "The code that it started under is back."
    assert trail.instance_id == instance.id
    call_command("verify", stdout=io.StringIO())


def test_the_time_until_the_old_code_is_back_is_not_slept_through() -> None:
    async def sleeping(step: WorkflowStep) -> None:
        await asyncio.gather(step.sleep("nap", "1 hour"), step.wait_for_event("go"))

    instance = parked(sleeping, **HALT)
    deploy(new, **HALT)
    instance.send_event("go")
    with running_shift():
        wait_for(instance, "paused")
    ended_at = step(instance, "nap").wake_at
    Instance.objects.filter(key=instance.key).update(paused_at=F("paused_at") - timedelta(minutes=10))
    deploy(sleeping, **HALT)
    with running_shift():
        wait_for(instance, "waiting")
    assert step(instance, "nap").wake_at - ended_at >= timedelta(minutes=10)


def test_what_a_person_paused_stays_paused_when_the_code_is_back_and_when_it_is_accepted() -> None:
    instance = parked(**HALT)
    instance.pause(by="ada")
    deploy(new, **HALT)
    assert instance.accept_code().status == "paused"
    deploy(old, **HALT)
    instance.accept_code()
    other = halted()
    deploy(old, **HALT)
    with running_shift():
        wait_for(other)
        assert instance.refresh().status == "paused"


def test_rollbacks_wait_for_the_code_too_and_the_original_error_is_kept() -> None:
    undone: list[str] = []

    def undo(context: RollbackContext) -> None:
        if not undone:
            undone.append("failed")
            raise ConnectionError
        undone.append("done")

    async def failing(step: WorkflowStep) -> None:
        await step.do("book", str, rollback=undo, rollback_options={"delay": "1 hour"})
        await step.fail("no stock")

    async def changed(step: WorkflowStep) -> None:
        await step.do("book", str, rollback=undo)

    def rolled_back_halfway() -> Instance:
        undone.clear()
        instance = deploy(failing, **HALT).start()
        with running_shift():
            wait_for(instance, "waiting")
        deploy(changed, **HALT)
        skip_wait(instance)
        Step.objects.filter(instance=instance, rollback="running").update(wake_at=ClockTimestamp())
        with running_shift():
            wait_for(instance, "paused")
        assert (instance.rollback, instance.pause_reason["type"], undone) == (
            "running",
            "CodeChangedError",
            ["failed"],
        )
        return instance

    for go_on in (lambda one: one.accept_code(), lambda one: deploy(failing, **HALT)):
        instance = rolled_back_halfway()
        go_on(instance)
        run_to_end(instance)
        assert (instance.status, instance.rollback, undone) == ("errored", "complete", ["failed", "done"])
        assert instance.error["message"] == "no stock"
    call_command("verify", stdout=io.StringIO())


def test_accepting_what_is_not_changed_does_nothing() -> None:
    instance = parked(**HALT)
    assert instance.accept_code(by="ada").status == "waiting"
    assert not Audit.objects.exists()


def test_code_that_is_accepted_beforehand_pauses_nothing() -> None:
    instance = parked(**HALT)
    deploy(new, **HALT)
    assert instance.accept_code(by="ada").status == "waiting"
    instance.send_event("go")
    assert run_to_end(instance).output == "old-new"


def test_the_code_of_an_instance_that_has_ended_is_not_accepted_any_more() -> None:
    instance = parked()
    instance.terminate()
    with pytest.raises(InstanceFinishedError, match="accepting other code is no longer possible"):
        instance.accept_code()


def test_the_code_of_a_workflow_that_nobody_declares_cannot_be_accepted() -> None:
    instance = halted()
    workflows._workflows.pop("story")
    with pytest.raises(UnknownWorkflowError):
        instance.accept_code()
    assert instance.refresh().status == "paused"


def test_a_wrong_option_is_named() -> None:
    with pytest.raises(DeclarationError, match=r'on_code_change: It must be "continue" or "pause"\.'):
        deploy(old, on_code_change="stop")
