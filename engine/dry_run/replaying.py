"""Replay open instances one after the other, and judge each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

from engine.declare.registry import workflows as declared
from engine.dry_run import reading, verdict
from engine.dry_run.cycle import DryCycle
from engine.dry_run.host import DryHost
from engine.dry_run.reading import Recorded
from engine.dry_run.verdict import Finding, Judgement
from engine.worker.bodies.slices import Slices


def replay_open(workflows: Collection[str] | None = None, *, timeout: timedelta) -> Iterator[Finding]:
    """Yield what today's code would do with each open instance, or with those of these workflows.

    Nothing is written: the connection is read only until the last finding has been taken. Only what the steps have
    recorded is replayed. In the main thread, a handler that does not return is interrupted after this time, or after
    its `handler_timeout` if that is shorter.
    """
    return _replay(reading.open_instances(workflows), timeout)


def replay_one(key: int, *, timeout: timedelta) -> Finding | None:
    """Return the same for one instance; None if it has ended."""
    found = [*_replay(reading.read([key]), timeout)]
    return found[0] if found else None


def _replay(found: Iterable[Recorded], timeout: timedelta) -> Iterator[Finding]:
    with reading.read_only(), closing(Slices()) as slices:
        for one in found:
            judged = _judged(one, slices, timeout)
            yield judged.of(one.claimed.workflow, one.claimed.id, one.status)


def _judged(one: Recorded, slices: Slices, timeout: timedelta) -> Judgement:
    workflow = declared.get(one.claimed.workflow)
    if workflow is None:
        return verdict.unknown(one.claimed.workflow)
    workflow = replace(workflow, handler_timeout=min(workflow.handler_timeout, timeout))
    cycle = DryCycle(DryHost(slices, one.now_us), workflow, one.claimed, one.history)
    try:
        cycle.begin()
        cycle.advance()
        return verdict.judge(cycle)
    except Exception as error:  # noqa: BLE001 - as in a worker, what fails in one instance does not concern the others
        return verdict.stops(error, cycle.at)
    finally:
        slices.shut(cycle)
        slices.forget(cycle)
        cycle.forget()
