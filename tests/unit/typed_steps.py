"""What type checkers make of defined steps, of maps and of children: read by `make check`, never run.

A line with `type: ignore` has to be an error: mypy complains of those that are not needed.
"""

from __future__ import annotations

from typing import Any, assert_type

from engine import Handle, InstanceResult, StepContext, WorkflowStep, branch, define_step, workflow


@define_step
def double(number: int, *, times: int = 1) -> int:
    return number * 2 * times


@define_step("fetch", max_attempts=2)
async def fetch(ctx: StepContext, url: str) -> bytes:
    return url.encode()


@define_step
def show(value: object, note: Any) -> str:
    return f"{value} {note}"


async def handler(step: WorkflowStep) -> None:
    assert_type(await step.run(double, 1, times=2), int)
    assert_type(await step.run(fetch, "x"), bytes)
    assert_type(await step.run(fetch.using(max_attempts=1), url="x"), bytes)
    assert_type(await step.run(show, 1, 2), str)
    assert_type(double(1), int)

    await step.run(double, "1")  # type: ignore[call-overload]
    await step.run(double)  # type: ignore[call-overload]
    await step.run(double, 1, many=2)  # type: ignore[arg-type, call-arg]
    await step.run(fetch, 1)  # type: ignore[call-overload]
    await step.run(fetch, "x", 2)  # type: ignore[call-overload]
    await step.run(show, 1)  # type: ignore[call-overload]
    double("1")  # type: ignore[call-overload]


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


async def children(step: WorkflowStep) -> None:
    assert_type(await step.run_workflow("a", bill, 1), str)
    assert_type(await step.run_workflow("a", "bill", 1), Any)
    assert_type(await step.spawn("a", bill, 1), Handle)
    assert_type(await step.wait_for_instance("a", workflow=bill, id="one"), InstanceResult)
    assert_type(await step.parallel("a", branch(bill, 1), branch(tidy), on_failure="terminate"), list[Any])
    await step.run_workflow("a", tidy)

    await step.run_workflow("a", bill, "1")  # type: ignore[misc]
    await step.run_workflow("a", bill)  # type: ignore[arg-type]
    await step.spawn("a", bill, "1")  # type: ignore[misc]
    await step.parallel("a", branch(bill, 1), on_failure="ignore")  # type: ignore[arg-type]
