"""What type checkers make of defined steps: read by `test_typing.py`, never run.

A line with `type: ignore` has to be an error: mypy complains of those that are not needed.
"""

from __future__ import annotations

from typing import Any, assert_type

from engine import StepContext, WorkflowStep, define_step


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
