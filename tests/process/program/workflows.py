"""One workflow whose params are its program, so that every test says what its instances do."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from django.dispatch import receiver

from engine import RollbackContext, StepContext, WorkflowStep, branch, workflow
from engine.models import Attempt
from engine.signals import instance_errored
from tests import shop
from tests.process import ledger


@dataclass
class Op:
    """One operation. `seconds` of a body: how long its attempts take, the last value for all later ones."""

    kind: Literal[
        "work",
        "block",
        "stubborn",
        "flaky",
        "patient",
        "strict",
        "sell",
        "tell",
        "kill",
        "order",
        "refund",
        "ask",
        "fail",
        "sleep",
        "event",
        "together",
        "nest",
    ]
    name: str = ""
    seconds: list[float] = field(default_factory=lambda: [0.0])
    ops: list[Op] = field(default_factory=list)
    max_attempts: int = 5


def work(name: str, *seconds: float) -> Op:
    """An async body."""
    return Op("work", name, list(seconds) or [0.0])


def block(name: str, *seconds: float) -> Op:
    """A sync body, in a thread."""
    return Op("block", name, list(seconds) or [0.0])


def stubborn(name: str, *seconds: float) -> Op:
    """An async body that continues when it is cancelled."""
    return Op("stubborn", name, list(seconds) or [0.0])


def flaky(name: str, *seconds: float) -> Op:
    """A sync body that fails once."""
    return Op("flaky", name, list(seconds) or [0.0])


def sell(name: str, *seconds: float) -> Op:
    """An atomic body that writes a row to the database."""
    return Op("sell", name, list(seconds) or [0.0])


def tell(name: str) -> Op:
    """An async body that logs a line."""
    return Op("tell", name)


def kill(name: str) -> Op:
    """A body that kills its worker, as if it had used all the memory."""
    return Op("kill", name)


def order(name: str, *seconds: float) -> Op:
    """A body that takes no time, and its rollback, which does."""
    return Op("order", name, list(seconds) or [0.0])


def refund(name: str) -> Op:
    """A body that takes no time, and its atomic rollback, which writes a row to the database."""
    return Op("refund", name)


def patient(name: str, *seconds: float) -> Op:
    """A sync body that fails once and then backs off for an hour."""
    return Op("patient", name, list(seconds) or [0.0])


def strict(name: str, *seconds: float) -> Op:
    """A sync body that fails twice, with two attempts after which the instance pauses."""
    return Op("strict", name, list(seconds) or [0.0])


def ask(name: str, *seconds: float) -> Op:
    """A body that fails once, and a delay function that takes its time over saying: at once. After 5 s nobody waits."""
    return Op("ask", name, list(seconds))


def fail() -> Op:
    return Op("fail")


def sleep(name: str, seconds: float) -> Op:
    return Op("sleep", name, [seconds])


def event(name: str) -> Op:
    return Op("event", name)


def together(*ops: Op) -> Op:
    """Operations in a `gather`."""
    return Op("together", ops=list(ops))


def nest(name: str, *ops: Op) -> Op:
    """A body that runs operations as steps of its own, one after the other."""
    return Op("nest", name, ops=list(ops))


ATOMIC = {"atomic": True, "delay": "100ms"}
PAUSING: dict[str, Any] = {"max_attempts": 2, "delay": "100ms", "on_exhausted": "pause"}


@workflow
async def program(step: WorkflowStep, params: list[Op]) -> list[Any]:
    """Do one operation after the other; return what each returned."""
    return [await perform(step, op) for op in params]


@workflow(max_running=3)
async def narrow(step: WorkflowStep, params: list[Op]) -> list[Any]:
    """The same, but only three at a time."""
    return [await perform(step, op) for op in params]


@workflow
async def doomed(step: WorkflowStep, message: str) -> None:
    """Fail, and have a receiver told of it."""
    raise LookupError(message)


@receiver(instance_errored, sender=doomed)
def hear(instance_id: str, notice_id: int, error_message: str, **_: Any) -> None:
    """Note it; the first time of what has this message, die of it."""
    is_first = ledger.Ledger(ledger.path()).lines(what="heard", instance=instance_id) == []
    ledger.write("heard", instance=instance_id, key=str(notice_id))
    if is_first and error_message == "kills":
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Family:
    """How to start some children, which run these operations."""

    kind: Literal["run", "gather", "parallel", "fail", "stop"]
    count: int
    child: list[Op]


@workflow
async def family(step: WorkflowStep, params: Family) -> list[Any]:
    """Start children; fail while they run, or wait for an event that never comes, if told to."""
    if params.kind == "run":
        return [await step.run_workflow("child", program, params.child) for _ in range(params.count)]
    if params.kind == "parallel":
        return await step.parallel("children", *(branch(program, params.child) for _ in range(params.count)))
    children = [
        asyncio.ensure_future(step.run_workflow("child", program, params.child)) for _ in range(params.count)
    ]
    if params.kind == "gather":
        return list(await asyncio.gather(*children))
    await step.sleep("a moment", 0.1 if params.kind == "fail" else 3600)
    return await step.fail("as the family says")


async def perform(step: WorkflowStep, op: Op) -> Any:
    match op.kind:
        case "together":
            return list(await asyncio.gather(*(perform(step, one) for one in op.ops)))
        case "nest":
            return await step.do(op.name, run_steps, step, op.ops, delay="100ms")
        case "sleep":
            return await step.sleep(op.name, op.seconds[0])
        case "event":
            return (await step.wait_for_event(op.name, timeout="1h")).payload
        case "fail":
            return await step.fail("as the program says")
        case "order":
            return await step.do(op.name, run_sync, [0.0], rollback=functools.partial(undo, op.seconds))
        case "ask":
            return await step.do(op.name, run_into_an_error, delay=functools.partial(say_when, op.seconds))
        case "patient":
            return await step.do(op.name, run_and_fail_once, op.seconds, delay="1h", max_delay="1h")
        case "strict":
            return await step.do(op.name, run_and_fail_twice, op.seconds, **PAUSING)
        case "refund":
            return await step.do(op.name, run_sync, [0.0], rollback=undo_sale, rollback_options=ATOMIC)
        case "sell":
            options: dict[str, Any] = {"max_attempts": op.max_attempts, "delay": "100ms"}
            return await step.do(op.name, run_sale, op.seconds, atomic=True, **options)
        case _:
            body = BODIES[op.kind]
            return await step.do(op.name, body, op.seconds, max_attempts=op.max_attempts, delay="100ms")


async def run_async(seconds: list[float], ctx: StepContext) -> int:
    note("start", ctx)
    await asyncio.sleep(_of_attempt(seconds, ctx))
    note("end", ctx)
    return ctx.attempt


async def run_steps(step: WorkflowStep, ops: list[Op]) -> list[Any]:
    return [await perform(step, one) for one in ops]


def run_sync(seconds: list[float], ctx: StepContext) -> int:
    note("start", ctx)
    time.sleep(_of_attempt(seconds, ctx))
    note("end", ctx)
    return ctx.attempt


async def run_stubbornly(seconds: list[float], ctx: StepContext) -> int:
    note("start", ctx)
    ends_at = time.monotonic() + _of_attempt(seconds, ctx)
    while (left := ends_at - time.monotonic()) > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(left)
    note("end", ctx)
    return ctx.attempt


def run_and_fail_once(seconds: list[float], ctx: StepContext) -> int:
    attempt = run_sync(seconds, ctx)
    if attempt == 1:
        raise ConnectionError("once, as the program says")
    return attempt


def run_and_fail_twice(seconds: list[float], ctx: StepContext) -> int:
    attempt = run_sync(seconds, ctx)
    if Attempt.objects.filter(instance__id=ctx.instance_id, status="errored").count() < 2:
        raise ConnectionError("twice, as the program says")
    return attempt


def run_sale(seconds: list[float], ctx: StepContext) -> int:
    note("start", ctx)
    shop.sell(ctx, ctx.name)
    time.sleep(_of_attempt(seconds, ctx))
    return ctx.attempt


async def run_and_tell(seconds: list[float], ctx: StepContext) -> int:
    ctx.log.info("told")
    return await run_async(seconds, ctx)


def run_into_death(seconds: list[float], ctx: StepContext) -> None:
    note("start", ctx)
    os.kill(os.getpid(), signal.SIGKILL)


BODIES: dict[str, Any] = {
    "work": run_async,
    "block": run_sync,
    "stubborn": run_stubbornly,
    "flaky": run_and_fail_once,
    "tell": run_and_tell,
    "kill": run_into_death,
}


async def undo(seconds: list[float], ctx: RollbackContext) -> None:
    note("undo", ctx)
    await asyncio.sleep(_of_attempt(seconds, ctx))
    note("undone", ctx)


def run_into_an_error(ctx: StepContext) -> int:
    note("start", ctx)
    if ctx.attempt == 1:
        raise ConnectionError("the service is away")
    return ctx.attempt


def say_when(seconds: list[float], ctx: StepContext, error: BaseException) -> float:
    note(f"asked about {type(error).__name__}", ctx)
    time.sleep(seconds[0])
    return 0


def undo_sale(ctx: RollbackContext) -> None:
    note("undo", ctx)
    shop.sell(ctx, f"undone {ctx.name}")


def note(what: str, ctx: StepContext) -> None:
    ledger.write(what, instance=ctx.instance_id, step=ctx.name, attempt=ctx.attempt, key=ctx.idempotency_key)


def _of_attempt(seconds: list[float], ctx: StepContext) -> float:
    return seconds[min(ctx.attempt, len(seconds)) - 1]
