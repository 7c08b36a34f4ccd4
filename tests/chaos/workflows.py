"""One workflow whose params are its program; its bodies tell the ledger what they do."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.db import connection

from engine import (
    EventTimeoutError,
    RollbackContext,
    Schedule,
    StepContext,
    StepError,
    WorkflowStep,
    workflow,
)
from tests.chaos.ops import ATTEMPTS_OF_THE_BROKEN, REFUSED, TIMED_OUT, Op, made_by, nasty
from tests.process import ledger


class BrokenError(Exception):
    """A body that was told to fail."""


@workflow
async def kitchen_sink(step: WorkflowStep, params: list[Op]) -> list[Any]:
    """Do one operation after the other; return what each returned."""
    return [await perform(step, op) for op in params]


EVERY_MINUTE = Schedule("* * * * *", params=0, name="every-minute")


@workflow(schedules=[EVERY_MINUTE], retention=dict.fromkeys(("complete", "errored", "terminated"), 0))
async def passing(step: WorkflowStep, params: int) -> None:
    """Be over soon, children first, and then be deleted at once."""
    await step.do("first", work_silently)
    await step.sleep("nap", 0.2)
    if params:
        await step.run_workflow("child", passing, params - 1)
    await step.do("last", pass_by, delay="200ms")


async def work_silently() -> None:
    await asyncio.sleep(0.01)


def pass_by(ctx: StepContext) -> None:
    ledger.write("passed", instance=ctx.instance_id)


async def perform(step: WorkflowStep, op: Op) -> Any:
    match op.kind:
        case "together":
            return list(await asyncio.gather(*(perform(step, one) for one in op.ops)))
        case "sleep":
            return await step.sleep(op.name, op.seconds)
        case "event":
            return await wait(step, op)
        case "nasty":
            return await try_nasty(step, op)
        case "child":
            return len(await step.run_workflow(op.name, kitchen_sink, op.ops))
        case "undo":
            return await step.do(op.name, work, op, rollback=take_back, rollback_options={"delay": "200ms"})
        case "atomic":  # its own database comes and goes: that is a failure of the body
            return await step.do(
                op.name, sell, op, atomic=True, max_attempts=50, delay="500ms", backoff="constant"
            )
        case "broken":
            return await step.do(op.name, fail, op, max_attempts=ATTEMPTS_OF_THE_BROKEN, delay="200ms")
        case "nested":
            return await step.do(op.name, nest, step, op, delay="200ms")
        case _:
            kinds = {"work": work, "block": block, "stubborn": insist, "poison": die_once, "flaky": fail}
            body = kinds[op.kind]
            return await step.do(op.name, body, op, delay="200ms")


async def wait(step: WorkflowStep, op: Op) -> Any:
    try:
        return (await step.wait_for_event(op.name, op.what, timeout=op.seconds)).payload
    except EventTimeoutError:
        return TIMED_OUT


async def try_nasty(step: WorkflowStep, op: Op) -> Any:
    try:
        return await step.do(op.name, make, op)
    except StepError:
        return REFUSED


async def work(op: Op, ctx: StepContext) -> str:
    with noted(ctx):
        await asyncio.sleep(op.seconds)
        return made_by(ctx.instance_id, ctx.name)


def block(op: Op, ctx: StepContext) -> str:
    """In a thread, which nobody can interrupt."""
    with noted(ctx):
        time.sleep(op.seconds)
        return made_by(ctx.instance_id, ctx.name)


async def insist(op: Op, ctx: StepContext) -> str:
    """Go on when it is cancelled."""
    with noted(ctx):
        ends_at = time.monotonic() + op.seconds
        while (left := ends_at - time.monotonic()) > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(left)
        return made_by(ctx.instance_id, ctx.name)


async def nest(step: WorkflowStep, op: Op, ctx: StepContext) -> str:
    """Leave the work to two steps within."""
    with noted(ctx):
        await asyncio.gather(
            step.do(f"{op.name} in a thread", block, op), step.do(f"{op.name} on the loop", insist, op)
        )
        return made_by(ctx.instance_id, ctx.name)


def sell(op: Op, ctx: StepContext) -> str:
    """Write a row that is there once if the step is complete, and not at all if it is not."""
    with noted(ctx):
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO chaos_sale VALUES (%s, %s)", [label(ctx), ctx.name])
        time.sleep(op.seconds)
        return made_by(ctx.instance_id, ctx.name)


async def take_back(ctx: RollbackContext) -> None:
    note("undo", ctx)
    await asyncio.sleep(ctx.args[0].seconds)
    note("undone", ctx)


async def die_once(op: Op, ctx: StepContext) -> str:
    """Kill this worker the first time, as a body does that takes all the memory."""
    with noted(ctx):
        marker = ledger.path().with_name(f"died-{ctx.instance_id}-{ctx.name}")
        if not marker.exists():
            marker.touch()
            note("poison", ctx)
            os.kill(os.getpid(), signal.SIGKILL)
        return made_by(ctx.instance_id, ctx.name)


async def fail(op: Op, ctx: StepContext) -> str:
    with noted(ctx):
        await asyncio.sleep(op.seconds)
        if op.kind == "broken" or ctx.attempt <= op.times:
            raise BrokenError(f"as told, attempt {ctx.attempt}")
        return made_by(ctx.instance_id, ctx.name)


async def make(op: Op, ctx: StepContext) -> Any:
    with noted(ctx):
        return nasty(op.what)


@contextmanager
def noted(ctx: StepContext) -> Iterator[None]:
    """Write down when the body starts and how it ends; of a killed one only the start stands there."""
    note("start", ctx)
    try:
        yield
    except BaseException as error:
        note("failed" if isinstance(error, Exception) else "cancelled", ctx)
        raise
    note("end", ctx)


def note(what: str, ctx: StepContext) -> None:
    ledger.write(what, instance=label(ctx), step=ctx.name, attempt=ctx.attempt, key=ctx.idempotency_key)


def label(ctx: StepContext | RollbackContext) -> str:
    """Name the generation of the instance: what was restarted does the same steps again."""
    return ctx.instance_id if ctx.generation == 1 else f"{ctx.instance_id}@{ctx.generation}"
