"""The connection breaks before or after every statement of a public call: it has happened once, or not at all.

Whatever the caller was told, the same call again makes it exactly one, and the work goes on to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import Error, transaction

from engine import InstanceExistsError, InstanceFinishedError, WorkflowStep, workflow, workflows
from engine.declare.registry import Workflow
from engine.models import Event, Instance
from engine.worker.database import worker_lock
from tests.faults.conftest import CALLER
from tests.faults.points import DROPS, Watcher, in_a_session_of_its_own, violations
from tests.faults.proxy import Fault, Proxy
from tests.faults.snapshot import snapshot
from tests.integration.rows import attempt_of, leased, step_of
from tests.shifts import running_shift, wait_for

pytestmark = pytest.mark.second_tier

DEAD_WORKER = 7


@pytest.fixture(autouse=True)
def story(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Workflow[Any, Any]:
    # Lost, not died: what it held need not run alone, each after a sweep.
    monkeypatch.setattr(worker_lock, "_taken_here", {DEAD_WORKER})

    @workflow
    async def story(step: WorkflowStep, params: str) -> list[str]:
        begun = await step.do("begin", params.upper)
        event = await step.wait_for_event("go", timeout="1h")
        return [begun, event.payload]

    return story


def declared() -> Workflow[Any, Any]:
    return workflows["story"]


# How an instance gets to where a case needs it


def nothing(name: str) -> None:
    """The case starts it."""


def queued(name: str) -> None:
    declared().start("x", id=name)


def held(name: str) -> None:
    """A worker runs a body of it; a dead one, so that a later shift goes on."""
    instance = leased(declared().start("x", id=name), worker_id=DEAD_WORKER)
    step_of(instance, name="begin", attempts=1, options={})
    attempt_of(instance, worker="dead")


def pausing(name: str) -> None:
    held(name)
    declared().get(name).pause()


def paused(name: str) -> None:
    queued(name)
    declared().get(name).pause()


# What a case calls


def start(name: str) -> Instance:
    return declared().start("x", id=name, by="ada")


def get_or_start(name: str) -> tuple[Instance, bool]:
    return declared().get_or_start(name, "x", by="ada")


def start_many(name: str) -> list[str | None]:
    items = [{"params": "x", "id": f"{name}-{letter}"} for letter in "abc"]
    return [error["id"] for error in declared().start_many(items, by="ada").errors]


def send(name: str) -> Event:
    return declared().get(name).send_event("go", "sent", dedup_key="once", by="ada")


def pause(name: str) -> Instance:
    return declared().get(name).pause(by="ada")


def resume(name: str) -> Instance:
    return declared().get(name).resume(by="ada")


def terminate(name: str) -> Instance:
    return declared().get(name).terminate(by="ada")


def in_one_transaction(name: str) -> Event:
    with transaction.atomic():
        instance, _ = declared().get_or_start(name, "x")
        return instance.send_event("go", "sent", dedup_key="once", by="ada")


@dataclass(frozen=True)
class Case:
    """`again` judges the answer of a repeated call that finds the work of the first one done."""

    act: Callable[[str], object]
    before: Callable[[str], None] = queued
    again: Callable[[str, Any], bool] = lambda name, answer: answer.status == declared().get(name).status


CASES = {
    "start": Case(start, nothing, lambda name, answer: isinstance(answer, InstanceExistsError)),
    "get_or_start": Case(
        get_or_start, nothing, lambda name, answer: (answer[0].id, answer[1]) == (name, False)
    ),
    "start_many": Case(
        start_many, nothing, lambda name, answer: answer == [f"{name}-{letter}" for letter in "abc"]
    ),
    "send_event": Case(send, queued, lambda name, answer: answer.payload == "sent"),
    "send_event to a held one": Case(send, held, lambda name, answer: answer.payload == "sent"),
    "pause": Case(pause),
    "pause of a held one": Case(pause, held),
    "resume": Case(resume, paused),
    "resume of a pausing one": Case(resume, pausing),
    "terminate": Case(terminate, queued, lambda name, answer: isinstance(answer, InstanceFinishedError)),
    "terminate a held one": Case(
        terminate, held, lambda name, answer: isinstance(answer, InstanceFinishedError)
    ),
    "start and send_event": Case(in_one_transaction, nothing, lambda name, answer: answer.payload == "sent"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_call_whose_connection_breaks_has_happened_once_or_not_at_all(proxy: Proxy, case: Case) -> None:
    before, after, statements = undisturbed(proxy, case)
    has_happened = []
    for name, number, fault in points(len(statements)):
        case.before(name)
        proxy.decide = Watcher(CALLER, number, fault)
        told = in_a_session_of_its_own(lambda name=name: case.act(name))
        assert isinstance(told, Error), (name, statements, told)
        found = snapshot(name)
        assert found in (before, after), (name, statements)
        has_happened.append(found == after)

        proxy.decide = Watcher(CALLER)
        again = in_a_session_of_its_own(lambda name=name: case.act(name))
        assert snapshot(name) == after, (name, statements, again)
        assert not isinstance(again, Error)
        if found == after:
            assert case.again(name, again), (name, again)
    # Exactly one moment makes it happen, neither the first nor the last of all.
    assert has_happened == sorted(has_happened)
    assert (has_happened[0], has_happened[-1]) == (False, True)
    everything_goes_on_to_its_end()


def undisturbed(proxy: Proxy, case: Case) -> tuple[list[Any], list[Any], list[str]]:
    """Make the call without a fault; return what is there before and after it, and its statements."""
    case.before("clean")
    before = snapshot("clean")
    watcher = proxy.decide = Watcher(CALLER)
    told = in_a_session_of_its_own(lambda: case.act("clean"))
    assert not isinstance(told, Exception), told
    after = snapshot("clean")
    assert before != after
    return before, after, watcher.seen


def points(count: int) -> Iterator[tuple[str, int, Fault]]:
    for number in range(1, count + 1):
        for fault in DROPS:
            yield f"{fault.name}-{number:02}-", number, fault


def everything_goes_on_to_its_end() -> None:
    left = list(Instance.objects.exclude(status="terminated"))
    with running_shift():
        for instance in left:  # what a dead worker held is taken back first
            wait_for(instance, "queued", "waiting", "paused", "complete").resume()
        for instance in left:
            if not instance.refresh().is_finished:
                instance.send_event("go", "sent", dedup_key="once")
        for instance in left:
            assert wait_for(instance).output == ["X", "sent"]
    sent = Event.objects.filter(instance__in=left)
    assert list(sent.values_list("state", "consumed_by")) == [("consumed", 2)] * len(left)
    assert violations() == []
