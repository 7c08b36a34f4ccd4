"""Wrong uses: a line with `# wrong` is an error for mypy and for pyright; `# wrong for mypy` (or pyright) only for it.

All other lines are right. Read by the type checkers, never run.
"""

from __future__ import annotations

from functools import partial

from engine import StepContext, StepOptionsDict, WorkflowStep, branch, define_step, workflow
from tests.types.right import (
    Order,
    Service,
    answer,
    approved,
    bill,
    context_first,
    double,
    fetch,
    fetch_step,
    first_context,
    last_context,
    last_context_async,
    length,
    look_up,
    named_context,
    of_batch,
    only_context,
    only_named_context,
    ship,
    shout,
    show,
    three_and_context,
    tidy,
)


async def do(step: WorkflowStep, service: Service) -> None:
    await step.do("a", answer, 1)  # wrong
    await step.do("a", shout)  # wrong
    await step.do("a", shout, 1)  # wrong
    await step.do("a", shout, "a", "b")  # wrong
    await step.do("a", shout, "a", 1, "?")  # wrong
    await step.do("a", fetch)  # wrong
    await step.do("a", fetch, 1)  # wrong
    await step.do("a", show, 1)  # wrong
    await step.do("a", service.get)  # wrong
    await step.do("a", service.get, 1)  # wrong
    await step.do("a", Service)  # wrong
    await step.do("a", shout("a"))  # wrong
    await step.do("a", partial(shout, mark=1), "a")  # wrong
    await step.do("a", partial(shout, mark="?"), 1)  # wrong for pyright
    await step.do("a", lambda n: n)  # wrong for pyright
    await step.do(answer)  # wrong
    number: str = await step.do("a", answer)  # wrong
    print(number)


async def do_with_context(step: WorkflowStep, service: Service) -> None:
    await step.do("a", only_context, 1)  # wrong
    await step.do("a", only_named_context, 1)  # wrong
    await step.do("a", first_context)  # wrong
    await step.do("a", first_context, 1)  # wrong
    await step.do("a", first_context, "a", 1)  # wrong
    await step.do("a", last_context, "a")  # wrong
    await step.do("a", last_context, "a", "b")  # wrong
    await step.do("a", last_context, "a", 1, 2)  # wrong
    await step.do("a", last_context_async)  # wrong
    await step.do("a", last_context_async, 1)  # wrong
    await step.do("a", named_context)  # wrong
    await step.do("a", named_context, 1)  # wrong
    await step.do("a", three_and_context, 1, "b")  # wrong
    await step.do("a", three_and_context, 1, "b", "c")  # wrong
    await step.do("a", service.put)  # wrong
    await step.do("a", other_name, "a")  # wrong


def other_name(text: str, context: StepContext) -> None: ...


async def options(step: WorkflowStep, anything: dict[str, int]) -> None:
    await step.do("a", answer, max_attemps=3)  # wrong
    await step.do("a", shout, "a", mark="?")  # wrong
    await step.do("a", answer, max_attempts="3")  # wrong
    await step.do("a", answer, timeout=None)  # wrong
    await step.do("a", answer, backoff="fibonacci")  # wrong
    await step.do("a", answer, delay=lambda: 1)  # wrong
    await step.do("a", answer, rollback=answer)  # wrong
    await step.do("a", answer, rollback_options={"once": True})  # wrong
    await step.do("a", answer, kwargs=3)  # wrong
    await step.do("a", answer, kwargs={}, retries=3)  # wrong
    await step.map("a", ["x"], length, parallel=3)  # wrong
    await step.for_each("a", ["x"], length, retries=3)  # wrong
    await step.batch("a", ["x"], of_batch, size=3)  # wrong
    await step.do("a", answer, **anything)  # wrong
    shared: StepOptionsDict = {"retries": 3}  # wrong
    step.do("a", retries=3)  # wrong
    double.using(retries=3)  # wrong
    double.rollback(once=True)  # wrong
    define_step("a", retries=3)  # wrong
    workflow("a", defaults={"retries": 3})  # wrong
    workflow("a", timout="1d")  # wrong
    print(shared)


async def context_in_the_middle(step: WorkflowStep) -> None:
    """Refused, although it works: docs/types.md says so."""

    def in_the_middle(a: int, ctx: StepContext, b: int) -> int:
        return a + b

    await step.do("a", in_the_middle, 1, 2)  # wrong


async def decorated(step: WorkflowStep) -> None:
    @step.do("add")
    def add(ctx: StepContext) -> int:
        return ctx.attempt

    @step.do("fetch")
    async def fetch_one(ctx: StepContext, url: str) -> bytes:
        return url.encode()

    await add(1)  # wrong
    await fetch_one()  # wrong
    await fetch_one(1)  # wrong
    await fetch_one("a", "b")  # wrong


async def run(step: WorkflowStep) -> None:
    await step.run(double)  # wrong
    await step.run(double, "1")  # wrong
    await step.run(double, 1, 2)  # wrong
    await step.run(double, 1, many=2)  # wrong
    await step.run(double, 1, times="2")  # wrong
    await step.run(fetch_step)  # wrong
    await step.run(fetch_step, 1)  # wrong
    await step.run(fetch_step, "x", 2)  # wrong
    await step.run(fetch_step, link="x")  # wrong
    await step.run(answer)  # wrong
    double("1")  # wrong
    found: list[str] = await step.run(look_up, "a")  # wrong
    print(found)


async def maps(step: WorkflowStep, items: list[str]) -> None:
    await step.map("a", [1], length)  # wrong
    await step.map("a", [1], context_first)  # wrong
    await step.map("a", items, of_batch)  # wrong
    await step.map("a", items, answer)  # wrong
    await step.batch("a", items, length)  # wrong
    lengths: list[str] = await step.map("a", items, length)  # wrong
    print(lengths)


async def waits(step: WorkflowStep) -> None:
    await step.sleep("a")  # wrong
    await step.wait_for_event("a", 3)  # wrong
    print((await step.wait_for_event("a", approved)).payload.aproved)  # wrong
    await step.request("a", bool)  # wrong
    await step.request("a", bool, message="Well?", timout="1d")  # wrong
    print((await step.request("a", bool, message="Well?")).value.real.nope)  # wrong


def starts() -> None:
    ship.start("A-1")  # wrong
    ship.start()  # wrong
    ship.start({"number": "A-1"}, idd="a")  # wrong
    bill.start("1")  # wrong
    tidy.start(1)  # wrong
    ship.get_or_start("a", 1)  # wrong
    ship.start_many([{"params": 3}])  # wrong
    ship.start_many([{"parms": Order("A-1")}])  # wrong
    number: int = bill.start(1).result()  # wrong
    print(number)


async def starts_async() -> None:
    await bill.astart("1")  # wrong
    await tidy.astart(1)  # wrong
    await bill.aget_or_start("a", "1")  # wrong


async def children(step: WorkflowStep) -> None:
    await step.run_workflow("a", bill, "1")  # wrong
    await step.run_workflow("a", bill)  # wrong
    await step.run_workflow("a", tidy, 1)  # wrong
    await step.spawn("a", bill, "1")  # wrong
    await step.spawn("a", bill)  # wrong
    branch(bill, "1")  # wrong
    branch(bill)  # wrong
    await step.parallel("a", bill)  # wrong
    await step.parallel("a", branch(bill, 1), on_failure="ignore")  # wrong
    bills = await step.parallel("a", branch(bill, 1), branch(bill, 2))
    print(bills[0].nope)  # wrong
    handle = await step.spawn("a", bill, 1)
    print((await step.wait_for_instance("a", handle)).output.upper())  # wrong
    await step.wait_for_instance("a")  # wrong


async def not_awaited(step: WorkflowStep) -> None:
    step.do("a", answer)  # wrong
    step.sleep("a", 1)  # wrong
    step.run(double, 1)  # wrong
