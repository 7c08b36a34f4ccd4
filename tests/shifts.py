"""A shift in a thread of the test's process, for tests that need the engine to run and no process to die."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from django.db import connections

from engine import WorkflowStep, workflow
from engine.models import Instance
from engine.steer import notify
from engine.worker import shift
from engine.worker.bodies import attempt

# A wait that takes longer fails the test; how long a busy machine takes is not tested.
PATIENCE = 60.0

running: list[str] = []  # the names of the shifts of this process


@contextmanager
def running_shift(*, slots: int = 64, name: str = "test", keeps_time: bool = False) -> Iterator[None]:
    """Run a shift until the block ends; an error that ends it early fails the test."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            # Asked for now: a test may have made it fewer.
            threads = attempt.SYNC_BODIES
            terms = shift.Terms(slots=slots, name=name, should_stop=stop.is_set, threads=threads)
            shift.run(replace(terms, keeps_time=keeps_time))
        except BaseException as error:  # noqa: BLE001 - told to the test
            failures.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=work, name="shift")
    thread.start()
    running.append(name)
    try:
        yield
    finally:
        running.remove(name)
        stop.set()
        notify.wake()  # or it would see it at its next tick
        thread.join(timeout=30)
        assert not thread.is_alive(), "the shift did not stop"
        assert failures == [], repr(failures)


def wait_until(
    condition: Callable[[], bool], *, seconds: float = PATIENCE, what: str = "the condition"
) -> None:
    """Poll until the condition holds."""
    ends_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends_at, f"{what} did not come true within {seconds} s"
        time.sleep(0.01)


async def until(gate: threading.Event) -> None:
    """Wait in an async body until the test sets a flag."""
    while not gate.is_set():
        await asyncio.sleep(0.005)


def wait_for(instance: Instance, *statuses: str, seconds: float = PATIENCE) -> Instance:
    """Wait until the instance has one of the statuses; by default, until it is finished."""
    wanted = statuses or ("complete", "errored", "terminated")
    wait_until(
        lambda: instance.refresh().status in wanted,
        seconds=seconds,
        what=f"{instance} being {' or '.join(wanted)}",
    )
    return instance


def run_to_end(instance: Instance, *, seconds: float = PATIENCE) -> Instance:
    """Run a shift until the instance is finished."""
    with running_shift():
        return wait_for(instance, seconds=seconds)


def witness() -> Callable[[], None]:
    """Declare a workflow. The function runs an instance of it: a shift has then seen what was said before."""

    @workflow("witness")
    async def story(step: WorkflowStep) -> None:
        await step.do("look", str)

    def look() -> None:
        wait_for(story.start())

    return look
