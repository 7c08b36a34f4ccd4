"""Steps that each ruin their worker in another way."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from typing import Any

from engine import WorkflowStep, workflow


def eats_memory() -> int:
    return len(bytearray(1 << 46))


def is_killed() -> None:
    """As the kernel does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


async def blocks_the_loop() -> None:
    while True:
        pass


async def never_returns() -> None:
    await asyncio.Event().wait()


async def never_lets_go() -> None:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)


def loops_in_a_thread() -> None:
    while True:
        pass


def returns_100_megabytes() -> str:
    return "x" * 100_000_000


def exits() -> None:
    raise SystemExit(3)


def says_10_megabytes() -> None:
    raise ValueError("x" * 10_000_000)


def has_1000_causes() -> None:
    error = ValueError("link 0")
    for number in range(1, 1000):
        link = ValueError(f"link {number}")
        link.__cause__ = error
        error = link
    raise error


def recurses() -> None:
    recurses()


# The body, and the error that it ends with.
POISONS: dict[str, tuple[Callable[[], Any], str]] = {
    one.__name__: (one, kind)
    for one, kind in (
        (eats_memory, "MemoryError"),
        (is_killed, "WorkerLostError"),
        (blocks_the_loop, "WorkerLostError"),
        (never_returns, "StepTimeoutError"),
        (never_lets_go, "StepTimeoutError"),
        (loops_in_a_thread, "StepTimeoutError"),
        (returns_100_megabytes, "LimitError"),
        (exits, "SystemExit"),
        (says_10_megabytes, "ValueError"),
        (has_1000_causes, "ValueError"),
        (recurses, "RecursionError"),
    )
}
SHORT, LONG = "500ms", "60s"
IN_THE_HANDLER = {"loops_in_the_handler": "WorkflowTimeoutError"}


@workflow(handler_timeout="500ms")
async def poison(step: WorkflowStep, params: str) -> None:
    """Do as the params say, after a step that is done once and for all."""
    await step.do("before", str)
    while params in IN_THE_HANDLER:
        pass
    body, error = POISONS[params]
    await step.do("poison", body, timeout=SHORT if error == "StepTimeoutError" else LONG, max_attempts=1)
