"""Right uses of everything that has types: mypy and pyright, both strict, accept each line and infer what it says.

Read by the type checkers, never run.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, assert_type
from uuid import UUID

from pydantic import BaseModel

from engine import (
    Answer,
    DefinedStep,
    Event,
    Handle,
    InstanceResult,
    ReceivedEvent,
    RollbackContext,
    RollbackOptionsDict,
    StepContext,
    StepOptionsDict,
    WorkflowStep,
    branch,
    define_step,
    workflow,
    workflows,
)
from engine.models import Instance, Step

# Functions of every shape


def nothing() -> None: ...
def answer() -> int:
    return 42


def shout(text: str, times: int = 1, *, mark: str = "!") -> str:
    return (text.upper() + mark) * times


async def fetch(url: str) -> bytes:
    return url.encode()


def maybe(number: int) -> int | None:
    return number or None


def first_context(ctx: StepContext, url: str) -> bytes:
    return url.encode()


async def first_context_async(ctx: StepContext, url: str) -> bytes:
    return url.encode()


def only_context(ctx: StepContext) -> int:
    return ctx.attempt


def only_named_context(*, ctx: StepContext) -> int:
    return ctx.attempt


def last_context(number: str, cents: int, ctx: StepContext) -> bytes:
    return ctx.idempotency_key.encode()


async def last_context_async(number: str, ctx: StepContext) -> bytes:
    return number.encode()


def named_context(number: str, cents: int = 0, *, ctx: StepContext) -> bytes:
    return number.encode()


async def named_context_async(number: str, *, ctx: StepContext) -> bytes:
    return number.encode()


def three_and_context(a: int, b: str, c: bytes, ctx: StepContext) -> float:
    return 0.5


def many(*numbers: int) -> int:
    return sum(numbers)


def show(value: object, note: Any) -> str:
    return f"{value} {note}"


class Service:
    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str) -> bytes:
        return path.encode()

    async def put(self, path: str, ctx: StepContext) -> int:
        return ctx.attempt


def refund(ctx: RollbackContext) -> None: ...
async def refund_async(ctx: RollbackContext) -> None: ...
def as_told(ctx: StepContext, error: Exception) -> float:
    return 1.5


async def as_told_async(ctx: StepContext, error: BaseException) -> datetime.timedelta | str:
    return "1m"


# step.do


async def do(step: WorkflowStep, service: Service, anything: Callable[..., int]) -> None:
    await step.do("a", nothing)
    assert_type(await step.do("a", answer), int)
    assert_type(await step.do("a", lambda: 3), int)
    assert_type(await step.do("a", lambda n: n + 1, 1), int)
    assert_type(await step.do("a", shout, "a"), str)
    assert_type(await step.do("a", shout, "a", 2), str)
    assert_type(await step.do("a", fetch, "a"), bytes)
    assert_type(await step.do("a", maybe, 1), int | None)
    assert_type(await step.do("a", many, 1, 2, 3), int)
    assert_type(await step.do("a", show, 1, 2), str)
    assert_type(await step.do("a", anything, 1, "a"), int)
    assert_type(await step.do("a", service.get, "a"), bytes)
    assert_type(await step.do("a", Service, "a"), Service)
    assert_type(await step.do("a", len, "a"), int)


async def do_with_context(step: WorkflowStep, service: Service) -> None:
    assert_type(await step.do("a", only_context), int)
    assert_type(await step.do("a", only_named_context), int)
    assert_type(await step.do("a", first_context, "a"), bytes)
    assert_type(await step.do("a", first_context_async, "a"), bytes)
    assert_type(await step.do("a", last_context, "a", 1), bytes)
    assert_type(await step.do("a", last_context_async, "a"), bytes)
    assert_type(await step.do("a", named_context, "a"), bytes)
    assert_type(await step.do("a", named_context, "a", 1), bytes)
    assert_type(await step.do("a", named_context_async, "a"), bytes)
    assert_type(await step.do("a", three_and_context, 1, "b", b"c"), float)
    assert_type(await step.do("a", service.put, "a"), int)
    await step.do("a", lambda ctx: print(ctx.attempt))


async def do_with_keywords(step: WorkflowStep) -> None:
    assert_type(await step.do("a", shout, "a", kwargs={"mark": "?"}), str)
    assert_type(await step.do("a", fetch, kwargs={"url": "a"}, max_attempts=2), bytes)
    assert_type(await step.do("a", partial(shout, mark="?"), "a"), str)
    assert_type(await step.do("a", partial(fetch, "a")), bytes)


SHARED: StepOptionsDict = {"max_attempts": 3, "delay": "2s"}
OF_ROLLBACK: RollbackOptionsDict = {"max_attempts": 10, "atomic": False}


async def options(step: WorkflowStep) -> None:
    await step.do("a", answer, max_attempts=1, delay=1, backoff="linear", max_delay="1h", jitter=0.5)
    await step.do("a", answer, delay=as_told, timeout=datetime.timedelta(minutes=1), once=True)
    await step.do("a", answer, delay=as_told_async, sensitive=True, atomic=True)
    await step.do("a", answer, rollback=refund, rollback_options={"max_attempts": 3})
    await step.do("a", answer, rollback=refund_async, rollback_options=OF_ROLLBACK)
    await step.do("a", answer, rollback=lambda ctx: print(ctx.output))
    assert_type(await step.do("a", shout, "a", **SHARED), str)
    await step.map("a", ["x"], length, concurrency=3, **SHARED)


async def decorated(step: WorkflowStep) -> None:
    @step.do("add", max_attempts=2)
    def add(ctx: StepContext) -> int:
        return ctx.attempt

    @step.do("fetch")
    async def fetch_one(ctx: StepContext, url: str) -> bytes:
        return url.encode()

    @step.do("plain")
    async def plain(url: str, *, times: int = 1) -> bytes:
        return url.encode() * times

    @step.do("late")
    def late(url: str, ctx: StepContext) -> bytes:
        return url.encode()

    assert_type(await add(), int)
    assert_type(await fetch_one("x"), bytes)
    assert_type(await plain("x", times=2), bytes)
    assert_type(await late("x"), bytes)


# step.run


@define_step
def double(number: int, *, times: int = 1) -> int:
    return number * 2 * times


@define_step("fetch", max_attempts=2)
async def fetch_step(ctx: StepContext, url: str) -> bytes:
    return url.encode()


@define_step(max_attempts=3, delay=as_told)
def look_up(email: str, ctx: StepContext) -> dict[str, str]:
    return {"email": email, "as": ctx.name}


@define_step(atomic=True)
def attempt(ctx: StepContext) -> int:
    return ctx.attempt


@double.rollback(max_attempts=3)
def halve(ctx: RollbackContext) -> None: ...


async def run(step: WorkflowStep) -> None:
    assert_type(await step.run(double, 1, times=2), int)
    assert_type(await step.run(fetch_step, "x"), bytes)
    assert_type(await step.run(fetch_step.using(max_attempts=1), url="x"), bytes)
    assert_type(await step.run(attempt), int)
    assert_type(await step.run(look_up, "a"), dict[str, str])
    assert_type(await step.run(look_up.using(name="again"), email="a"), dict[str, str])
    assert_type(await step.do("a", double, 1), int)
    assert_type(double(1), int)
    typed: DefinedStep[[int], int] = define_step(many_of_one)
    assert_type(await step.run(typed, 1), int)


def many_of_one(number: int, /) -> int:
    return number


# Collections


async def length(item: str, index: int) -> int:
    return len(item) + index


def by_name(item: str, index: int, *, ctx: StepContext) -> bytes:
    return item.encode()


def context_first(ctx: StepContext, item: str, index: int) -> bytes:
    return item.encode()


@define_step
def measure(ctx: StepContext, item: str, index: int) -> int:
    return len(item)


def of_batch(batch: list[str], start: int) -> None: ...


async def maps(step: WorkflowStep, items: list[str]) -> None:
    assert_type(await step.map("a", items, length, concurrency=3, max_attempts=2), list[int])
    assert_type(await step.map("a", items, by_name), list[bytes])
    assert_type(await step.map("a", items, measure, timeout="1m"), list[int])
    assert_type(await step.map("a", items, context_first), list[bytes])
    assert_type(await step.map("a", items, lambda item, index: len(item)), list[int])
    await step.for_each("a", items, length, timeout="1m")
    await step.batch("a", items, of_batch, batch_size=5, max_attempts=2)


# Waits


class Approval(BaseModel):
    approved: bool


approved = Event("approved", Approval)


async def waits(step: WorkflowStep) -> None:
    await step.sleep("a", "10m")
    await step.sleep_until("a", step.now() + datetime.timedelta(hours=1))
    assert_type(await step.wait_for_event("a", approved), ReceivedEvent[Approval])
    assert_type((await step.wait_for_event("a", approved, timeout=None)).payload, Approval)
    assert_type(await step.wait_for_event("a", "approved"), ReceivedEvent[Any])
    assert_type(await step.wait_for_event("a", ["approved", "refused"]), ReceivedEvent[Any])
    assert_type(await step.wait_for_event("a", [approved, "refused"]), ReceivedEvent[Any])
    assert_type(await step.request("a", Approval, message="Well?"), Answer[Approval])
    assert_type((await step.request("a", bool, message="Well?", timeout="1 day")).value, bool)
    assert_type(await step.request("a", bool | None, message="Well?"), Answer[Any])
    await step.progress("half", 50)
    assert_type(step.uuid4(), UUID)
    assert_type(step.now(), datetime.datetime)


# Starts and children


@workflow
async def bill(step: WorkflowStep, params: int) -> str:
    return str(params)


@workflow("tidy-up", timeout="1 day", defaults={"max_attempts": 3})
async def tidy(step: WorkflowStep) -> None: ...


@dataclass
class Order:
    number: str


@workflow(defaults=SHARED)
async def ship(step: WorkflowStep, params: Order) -> list[Order]:
    return [params]


def starts() -> None:
    assert_type(ship.start(Order("A-1")), Instance[list[Order]])
    assert_type(ship.start({"number": "A-1"}, id="a", by="shop", tags=["x"]), Instance[list[Order]])
    assert_type(ship.start({"number": "A-1"}).result(), list[Order])
    assert_type(ship.get("a").refresh().result(), list[Order])
    assert_type(ship.get("a").pause().resume(by="shop").result(), list[Order])
    assert_type(ship.get_or_start("a", {"number": "A-1"}), tuple[Instance[list[Order]], bool])
    started = ship.start_many([{"params": {"number": "A-1"}}, {"id": "b", "params": Order("A-2")}])
    assert_type(started.created, list[Instance[list[Order]]])
    assert_type(tidy.start(), Instance[None])
    assert_type(bill.start(1).result(), str)
    assert_type(workflows["bill"].start(1).result(), Any)
    ship.get("a").send_event("approved", {"approved": True}, reason="why not")
    ship.get("a").send_event(approved, Approval(approved=True))


async def starts_async() -> None:
    assert_type(await bill.astart(1), Instance[str])
    assert_type(await tidy.astart(), Instance[None])
    assert_type(await bill.aget_or_start("a", 1), tuple[Instance[str], bool])
    assert_type((await bill.aget("a")).result(), str)


def output_of(instance: Instance[str]) -> str:
    return instance.result()


def label_of(instance: Instance) -> str:
    assert_type(instance.status, str)
    assert_type(instance.output, Any)
    assert_type(instance.created_at, datetime.datetime)
    assert_type(instance.finished_at, datetime.datetime | None)
    assert_type(instance.steps.first(), Step | None)
    assert_type([one.status for one in Instance.objects.filter(id="a")], list[str])
    return f"{instance.id}: {instance.tags}"


async def children(step: WorkflowStep) -> None:
    assert_type(await step.run_workflow("a", bill, 1), str)
    assert_type(await step.run_workflow("a", "bill", 1), Any)
    assert_type(await step.run_workflow("a", ship, {"number": "A-1"}), list[Order])
    await step.run_workflow("a", tidy)


async def handles(step: WorkflowStep) -> None:
    handle = await step.spawn("a", bill, 1)
    assert_type(handle, Handle[str])
    assert_type(await step.spawn("a", tidy), Handle[None])
    assert_type(await step.spawn("a", ship, {"number": "A-1"}), Handle[list[Order]])
    assert_type(await step.wait_for_instance("a", handle), InstanceResult[str | None])
    assert_type((await step.wait_for_instance("a", handle, timeout="1h")).output, str | None)
    assert_type(await step.wait_for_instance("a", bill.get("a")), InstanceResult[str | None])
    assert_type(await step.wait_for_instance("a", workflow=bill, id="one"), InstanceResult[str | None])
    assert_type(await step.wait_for_instance("a", workflow="bill", id="one"), InstanceResult[Any])
    assert_type(of_any(handle), str)
    assert_type((await step.wait_for_instance("a", workflow="bill", id="one")).output, Any)


def of_any(handle: Handle) -> str:
    return handle.id


async def branches(step: WorkflowStep, numbers: list[int]) -> None:
    assert_type(await step.parallel("a", branch(bill, 1), branch(bill, 2)), list[str])
    assert_type(await step.parallel("a", *[branch(bill, number) for number in numbers]), list[str])
    assert_type(await step.parallel("a", branch(bill, 1), branch(tidy), on_failure="terminate"), list[Any])
    assert_type(
        await step.parallel("a", branch(ship, {"number": "A"}, compensate_with=tidy)), list[list[Order]]
    )
    assert_type(await step.parallel("a", branch("bill", 1), branch("bill", 2)), list[Any])
