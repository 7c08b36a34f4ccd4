"""The page of states says what the engine does: each action is tried in each status."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from engine import WorkflowStep, workflow
from engine.models import Instance
from engine.testing import WorkflowTest, workflow_test
from engine.values import errors
from engine.values.errors import RepriseError
from engine.values.states import InstanceStatus
from tests.docs.made import source
from tests.docs.made.actions import DONE, GONE, NOTHING, ROWS
from tests.docs.made.pages import REFERENCE

PAGE = (REFERENCE / "states.md").read_text()
CALLS: dict[str, Callable[[Instance], object]] = {
    "`pause()`": lambda it: it.pause(),
    "`resume()`": lambda it: it.resume(),
    "`terminate()`": lambda it: it.terminate(),
    "`terminate(rollback=True)`": lambda it: it.terminate(rollback=True),
    "`send_event(…)`": lambda it: it.send_event("other"),
    "`accept_code()`": lambda it: it.accept_code(),
    "`retry_rollback()`": lambda it: it.retry_rollback(),
    "`retry_step()`": lambda it: it.retry_step(),
    "`fail_step(…)`": lambda it: it.fail_step("fragile"),
    "`skip_step(…)`": lambda it: it.skip_step("fragile"),
    "`retry_now()`": lambda it: it.retry_now(),
    "`wake_now()`": lambda it: it.wake_now(),
    "`restart()`": lambda it: it.restart(),
    "`delete()`": lambda it: it.delete(),
}
OF_EXHAUSTED = ("`retry_step()`", "`fail_step(…)`", "`skip_step(…)`")  # while it is paused
IN_A_BODY = (InstanceStatus.RUNNING, InstanceStatus.WAITING_FOR_PAUSE)
acts_in_body: list[Callable[[], None]] = []  # taken by the next body


def undo(ctx: object) -> None:
    raise LookupError("it cannot be undone")


def break_down() -> None:
    raise ConnectionError("not now")


def work() -> None:
    if acts_in_body:
        acts_in_body.pop()()


@pytest.mark.parametrize("status", InstanceStatus)
@pytest.mark.parametrize("call", ROWS)
def test_an_action_does_in_each_status_what_the_page_says(
    call: str, status: InstanceStatus, db: None, own_registry: None
) -> None:
    is_exhausted = status == InstanceStatus.PAUSED and call in OF_EXHAUSTED
    pausing: dict[str, Any] = {"max_attempts": 1, "on_exhausted": "pause"} if is_exhausted else {}

    @workflow
    async def acted(step: WorkflowStep, fails: bool) -> None:
        naps = asyncio.ensure_future(step.sleep("nap", "1 day"))
        breaks = asyncio.ensure_future(step.do("fragile", break_down, delay="1 day", **pausing))
        if call == "`retry_step()`":  # a step is retried only if nothing has been rolled back
            await step.do("begin", work)
        else:
            await step.do("begin", work, rollback=undo, rollback_options={"max_attempts": 1})
        await step.do("work", work)
        await step.wait_for_event("go")
        naps.cancel()
        breaks.cancel()
        if fails:
            await step.do("fail", undo, max_attempts=1)

    acts_in_body.clear()
    seen: list[str] = []
    with workflow_test(acted, allow_unused=True, skips_time=False) as test:
        instance = test.start(status == InstanceStatus.ERRORED, id="acted")
        _act_in(test, instance, status, lambda: seen.append(_effect_of(call, status)))
    assert seen == [_said(call, status)]


def test_the_page_has_every_action_and_every_status() -> None:
    assert set(ROWS) == set(CALLS)
    [head] = re.findall(r"^\|  \| (`queued`.*) \|$", PAGE, re.MULTILINE)
    assert head.replace("`", "").split(" | ") == [str(status) for status in InstanceStatus]


def test_every_error_for_which_the_engine_pauses_is_a_pause_reason() -> None:
    shown = set(re.findall(r"^\| \[`(\w+Error)`\]", PAGE, re.MULTILINE))
    [pauses] = source.methods_of(source.class_of("engine.replay.exit.exit", "Exit"))["pause_with_reason"]
    accepted = {one.id for one in ast.walk(pauses.args.args[1].annotation) if isinstance(one, ast.Name)}  # type: ignore[arg-type]
    kinds = tuple(getattr(errors, name) for name in accepted)
    public = {name for name in errors.__all__ if issubclass(getattr(errors, name), kinds)}
    assert shown == {*public, "GivenUpError", "StepExhaustedError"}


def _act_in(test: WorkflowTest, instance: Instance, status: InstanceStatus, act: Callable[[], None]) -> None:
    """Bring the instance into the status, and act there."""
    if status in IN_A_BODY:

        def in_body() -> None:
            if status == InstanceStatus.WAITING_FOR_PAUSE:
                instance.pause()
            act()

        acts_in_body.extend([in_body, lambda: None])  # the second body acts: the first has a rollback
        test.run(instance)
        return
    test.run(instance)
    _reach(test, instance, status)
    act()


def _reach(test: WorkflowTest, instance: Instance, status: InstanceStatus) -> None:
    match status:
        case InstanceStatus.QUEUED:
            instance.pause()
            instance.resume()
        case InstanceStatus.PAUSED:
            instance.pause()
        case InstanceStatus.COMPLETE | InstanceStatus.ERRORED:
            instance.send_event("go")
            test.run(instance)
        case InstanceStatus.TERMINATED:
            instance.terminate(rollback=True)
            test.run(instance)


def _effect_of(call: str, status: InstanceStatus) -> str:
    instance = Instance.objects.get(id="acted")
    assert instance.status == status
    if call == "`accept_code()`":  # it does nothing for the code that the instance runs with
        Instance.objects.filter(id="acted").update(code="earlier")
    before = _columns()
    try:
        CALLS[call](instance)
    except RepriseError as error:
        assert _columns() == before
        return type(error).__name__
    after = _columns()
    if after is None:
        return GONE
    if after == before:
        return NOTHING
    return DONE if after["status"] == status else f"→ `{after['status']}`"


def _columns() -> dict[str, object] | None:
    return Instance.objects.filter(id="acted").values().first()


def _said(call: str, status: InstanceStatus) -> str:
    """Return what the page has in the row of the call and the column of the status."""
    [row] = [line for line in PAGE.splitlines() if line.startswith(f"| {call} |")]
    cell = row.split(" | ")[1 + [*InstanceStatus].index(status)].removesuffix(" |")
    linked = re.fullmatch(r"\[`(\w+)`\]\(errors.md#\w+\)", cell)
    return linked[1] if linked else cell
