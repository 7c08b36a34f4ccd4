"""The flows of the benchmark, as anybody would write them with Reprise."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, TypedDict

from engine import WorkflowStep, workflow
from tests.bench import marks


class Chain(TypedDict):
    inst: str
    n: int
    size: int
    ms: int
    marks: str


class Nap(TypedDict):
    inst: str
    secs: float


class Inst(TypedDict):
    inst: str


class Call(TypedDict):
    inst: str
    provider: str


class History(TypedDict):
    inst: str
    n: int


# Where marks go, and what a step returns; the side-by-side harness puts its own probe in here.
probe: dict[str, Any] = {"mark": marks.mark, "result": marks.result}


async def link(inst: str, i: int, size: int, ms: int, marked: bool) -> Any:
    if marked:
        probe["mark"]("s", inst, i)
    if ms:
        await asyncio.sleep(ms / 1000)
    return probe["result"](i, size)


async def mark(kind: str, inst: str) -> None:
    probe["mark"](kind, inst)


async def ask(inst: str, provider: str) -> None:
    if not Path(provider).exists():
        raise ConnectionError("The provider does not answer.")
    probe["mark"]("s", inst)


async def wait(secs: float) -> dict[str, bool]:
    await asyncio.sleep(secs)
    return {"ok": True}


@workflow(name="chain", max_steps=100_000)
async def chain(step: WorkflowStep, params: Chain) -> dict[str, int]:
    """Run n steps, one after the other."""
    inst = params["inst"]
    for i in range(params["n"]):
        marked = i == 0 or params["marks"] == "all"
        await step.do(f"s{i}", link, inst, i, params["size"], params["ms"], marked)
    probe["mark"]("e", inst)
    return {"n": params["n"]}


@workflow(name="call")
async def call(step: WorkflowStep, params: Call) -> None:
    """Ask a provider once; it answers while its file exists."""
    await step.do("ask", ask, params["inst"], params["provider"], max_attempts=1)


@workflow(name="event")
async def event(step: WorkflowStep, params: Inst) -> None:
    """Mark, wait for an event, mark."""
    await step.do("p", mark, "p", params["inst"])
    await step.wait_for_event("go")
    await step.do("r", mark, "r", params["inst"])


@workflow(name="history", max_steps=100_000)
async def history(step: WorkflowStep, params: History) -> None:
    """Run n steps, wait for an event, mark."""
    inst = params["inst"]
    for i in range(params["n"]):
        await step.do(f"s{i}", link, inst, i, 0, 0, False)
    await step.wait_for_event("go")
    await step.do("r", mark, "r", inst)


@workflow(name="io")
async def io(step: WorkflowStep, params: Nap) -> None:
    """One step that waits inside its body."""
    await step.do("io", wait, params["secs"])
    probe["mark"]("e", params["inst"])


@workflow(name="nap")
async def nap(step: WorkflowStep, params: Nap) -> None:
    """Sleep durably."""
    await step.do("n", mark, "n", params["inst"])
    await step.sleep("nap", params["secs"])
    await step.do("w", mark, "w", params["inst"])
