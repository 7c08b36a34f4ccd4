"""What type checkers make of defined steps, of maps and of children: read by `make check`, never run.

A line with `type: ignore` has to be an error: mypy complains of those that are not needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from engine import Handle, InstanceResult, StepContext, WorkflowStep, branch, define_step, workflow


@define_step
def double(number: int, *, times: int = 1) -> int:
    return number * 2 * times


@define_step("fetch", max_attempts=2)
async def fetch(ctx: StepContext, url: str) -> bytes:
    return url.encode()


@define_step(max_attempts=3)
def look_up(email: str, ctx: StepContext) -> dict[str, str]:
    return {"email": email, "as": ctx.name}


@define_step
async def put(key: str, value: bytes, *, ctx: StepContext) -> int:
    return len(value)


@define_step
def show(value: object, note: Any) -> str:
    return f"{value} {note}"


async def handler(step: WorkflowStep) -> None:
    assert_type(await step.run(double, 1, times=2), int)
    assert_type(await step.run(fetch, "x"), bytes)
    assert_type(await step.run(fetch.using(max_attempts=1), url="x"), bytes)
    assert_type(await step.run(show, 1, 2), str)
    assert_type(double(1), int)
    # What follows a `ctx` that is not the first is not checked.
    assert_type(await step.run(look_up, "a"), dict[str, str])
    assert_type(await step.run(look_up.using(name="again"), email="a"), dict[str, str])
    assert_type(await step.run(put, "a", value=b"b"), Any)

    await step.run(double, "1")  # type: ignore[call-overload]
    await step.run(double)  # type: ignore[call-overload]
    await step.run(double, 1, many=2)  # type: ignore[arg-type, call-arg]
    await step.run(fetch, 1)  # type: ignore[call-overload]
    await step.run(fetch, "x", 2)  # type: ignore[call-overload]
    await step.run(show, 1)  # type: ignore[call-overload]
    double("1")  # type: ignore[call-overload]


async def decorated(step: WorkflowStep, numbers: list[int]) -> None:
    @step.do("add", max_attempts=2)
    def add(ctx: StepContext) -> int:
        return sum(numbers)

    @step.do("fetch")
    async def fetch_one(ctx: StepContext, url: str) -> bytes:
        return url.encode()

    @step.do("plain")
    async def plain(url: str) -> bytes:
        return url.encode()

    @step.do("late")
    def late(url: str, ctx: StepContext) -> bytes:
        return url.encode()

    assert_type(await add(), int)
    assert_type(await fetch_one("x"), bytes)
    assert_type(await plain("x"), bytes)
    assert_type(await late("x"), bytes)

    await add(1)  # type: ignore[call-arg]
    await fetch_one(1)  # type: ignore[call-overload]
    await plain(1)  # type: ignore[call-overload]


async def length(item: str, index: int) -> int:
    return len(item) + index


def by_name(item: str, index: int, *, ctx: StepContext) -> bytes:
    return item.encode()


def of_batch(batch: list[str], start: int) -> None: ...


async def maps(step: WorkflowStep, items: list[str]) -> None:
    assert_type(await step.map("a", items, length, concurrency=3, max_attempts=2), list[int])
    assert_type(await step.map("a", items, by_name), list[bytes])
    assert_type(await step.map("a", items, lambda item, index: len(item)), list[int])
    await step.for_each("a", items, length)
    await step.batch("a", items, of_batch, batch_size=5)

    await step.map("a", [1], length)  # type: ignore[arg-type]
    await step.map("a", items, of_batch)  # type: ignore[arg-type]
    await step.batch("a", items, length)  # type: ignore[arg-type]


@workflow
async def bill(step: WorkflowStep, params: int) -> str:
    return str(params)


@workflow
async def tidy(step: WorkflowStep) -> None: ...


@dataclass
class Order:
    number: str


@workflow
async def ship(step: WorkflowStep, params: Order) -> str:
    return params.number


def starts() -> None:
    ship.start(Order("A-1"))
    ship.start({"number": "A-1"}, id="a", by="shop")
    ship.get_or_start("a", {"number": "A-1"})
    ship.start_many([{"params": {"number": "A-1"}}, {"id": "b", "params": Order("A-2")}])
    tidy.start()
    bill.start(1)

    ship.start("A-1")  # type: ignore[arg-type]
    ship.start({"number": "A-1"}, idd="a")  # type: ignore[call-arg]
    bill.start("1")  # type: ignore[arg-type]
    tidy.start(1)  # type: ignore[call-overload]


async def children(step: WorkflowStep) -> None:
    assert_type(await step.run_workflow("a", bill, 1), str)
    assert_type(await step.run_workflow("a", "bill", 1), Any)
    assert_type(await step.spawn("a", bill, 1), Handle)
    assert_type(await step.wait_for_instance("a", workflow=bill, id="one"), InstanceResult)
    assert_type(await step.parallel("a", branch(bill, 1), branch(tidy), on_failure="terminate"), list[Any])
    await step.run_workflow("a", tidy)
    assert_type(await step.run_workflow("a", ship, {"number": "A-1"}), str)
    assert_type(await step.spawn("a", ship, {"number": "A-1"}), Handle)

    await step.run_workflow("a", bill, "1")  # type: ignore[misc]
    await step.run_workflow("a", bill)  # type: ignore[arg-type]
    await step.spawn("a", bill, "1")  # type: ignore[misc]
    await step.parallel("a", branch(bill, 1), on_failure="ignore")  # type: ignore[arg-type]
