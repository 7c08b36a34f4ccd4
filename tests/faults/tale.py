"""Instances that between them make a worker send every kind of statement, and what must become of them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engine import NonRetryableError, StepContext, WorkflowStep, workflow, workflows
from engine.models import Attempt, Event, Instance, Log, Step
from tests.integration.rows import attempt_of, leased, step_of

DEAD_WORKER = 7
ENDS = {
    "plain": "complete",
    "paused": "complete",
    "failing": "errored",
    "stopped": "terminated",
    "left": "complete",
}
UNFINISHED = {("left", "async"), ("stopped", "gated")}  # lost or cancelled in the tale itself
OUTPUT = ["async", "sync", "flaky", "sent", "last"]


@dataclass
class Ledger:
    """What bodies did, whatever the database says, and the gate that some of them wait at."""

    started: list[tuple[str, str, int]] = field(default_factory=list)
    gates: dict[str, threading.Event] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)

    def note(self, ctx: StepContext) -> None:
        self.started.append((ctx.instance_id, ctx.name, ctx.attempt))


ledger = Ledger()


def declare() -> None:
    """Declare the workflow, of which nothing has run; `own_registry` forgets it."""
    ledger.started.clear()
    ledger.gates.clear()
    ledger.sent.clear()
    workflow(name="tale")(_tale)


async def _tale(step: WorkflowStep, params: str) -> list[Any]:
    step.log.info("begun")
    first = await step.do("async", awaits)
    second, third = await asyncio.gather(
        step.do("sync", returns), step.do("flaky", flaky, delay=0.01, max_attempts=9)
    )
    if params in ("paused", "stopped"):
        await step.do("gated", gated)
    if params == "failing":
        await step.do("fails", fails)
    await step.progress("half way", 50)
    await step.sleep("nap", 0.02)
    event = await step.wait_for_event("go", timeout="1h")
    return [first, second, third, event.payload, await step.do("last", returns)]


async def awaits(ctx: StepContext) -> str:
    ledger.note(ctx)
    ctx.log.info("from a body")
    await asyncio.sleep(0.005)
    return ctx.name


def returns(ctx: StepContext) -> str:
    ledger.note(ctx)
    return ctx.name


async def flaky(ctx: StepContext) -> str:
    """Fail the first time."""
    is_first = all(line[:2] != (ctx.instance_id, ctx.name) for line in ledger.started)
    ledger.note(ctx)
    if is_first:
        raise ValueError("the first time")
    return ctx.name


def gated(ctx: StepContext) -> None:
    ledger.note(ctx)
    assert ledger.gates[ctx.instance_id].wait(20)


def fails(ctx: StepContext) -> None:
    ledger.note(ctx)
    raise NonRetryableError("as it must")


def begin_one(prefix: str, kind: str = "plain") -> Instance:
    one = workflows["tale"].start(kind, id=f"{prefix}-{kind}")
    if kind == "plain":
        one.send_event("go", "sent", dedup_key="once")  # before it is waited for; to the others when it is
    return one


def begin(prefix: str) -> list[Instance]:
    """Start one instance of each kind; one was left behind by a worker that died."""
    made = [begin_one(prefix, kind) for kind in ENDS]
    ledger.gates.update({one.id: threading.Event() for one in made})
    left = leased(made[-1], worker_id=DEAD_WORKER)
    step_of(left, name="async", attempts=1, options={"max_attempts": 5})
    attempt_of(left, worker="dead")
    return made


def steer(
    instances: list[Instance], *, seconds: float = 20, until: Callable[[], bool] = lambda: False
) -> None:
    """Pause, resume and terminate during bodies, send the event once it is waited for, until all have ended."""
    ends_at = time.monotonic() + seconds
    while not until() and not all(one.refresh().is_finished for one in instances):
        left = [(one.id, one.status, one.waiting_for, one.error) for one in instances if not one.is_finished]
        assert time.monotonic() < ends_at, left
        for one in instances:
            _steer(one)
        time.sleep(0.005)


def _steer(one: Instance) -> None:
    gate = ledger.gates[one.id]
    if one.status == "waiting" and one.waiting_for == "event" and one.id not in ledger.sent:
        ledger.sent.add(one.id)
        one.send_event("go", "sent", dedup_key="once")
    if any(line[:2] == (one.id, "gated") for line in ledger.started) and not gate.is_set():
        one.pause() if one.params == "paused" else one.terminate()
        gate.set()
    elif one.params == "paused" and one.refresh().status == "paused":
        one.resume()


def check(instances: list[Instance], *, spends: int) -> None:
    """Every instance has ended as it must, nothing is there twice, no completed step was begun again.

    The fault may have cost a step so many attempts.
    """
    assert {one.params: one.status for one in instances} == ENDS
    for one in instances:
        if one.status == "complete":
            assert one.output == OUTPUT
            assert list(Event.objects.filter(instance=one).values_list("state", flat=True)) == ["consumed"]
        lines = Counter(Log.objects.filter(instance=one, attempt=None).values_list("message", flat=True))
        assert lines == {"begun": 1}
        of_bodies = Log.objects.filter(instance=one, attempt__isnull=False)
        assert set(Counter(of_bodies.values_list("step_seq", "attempt")).values()) <= {1}
        _check_attempts(one, spends)


def _check_attempts(one: Instance, spends: int) -> None:
    recorded: dict[tuple[str, int], str] = {}
    for step in Step.objects.filter(instance=one, kind="do"):
        attempts = list(Attempt.objects.filter(instance=one, step_seq=step.seq).order_by("number"))
        recorded |= {(step.name, attempt.number): attempt.status for attempt in attempts}
        ended = [attempt.status for attempt in attempts]
        assert "complete" not in ended[:-1], (one.id, step.name, ended)
        own = (one.params, step.name) in UNFINISHED
        assert ended.count("lost") + ended.count("cancelled") <= spends + own, (one.id, step.name, ended)
    started = Counter(line[1:] for line in ledger.started if line[0] == one.id)
    assert set(started.values()) <= {1}, (one.id, started)
    assert started.keys() <= recorded.keys(), (one.id, started, recorded)
    completed = {key for key, status in recorded.items() if status == "complete"}
    assert completed <= started.keys(), (one.id, started, recorded)
