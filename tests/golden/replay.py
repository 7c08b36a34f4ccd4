"""Replays a finished instance from what it has recorded, by a host that only watches."""

from __future__ import annotations

from typing import Any

from engine.declare.registry import Workflow
from engine.replay.cycle import Cycle
from engine.replay.host import Claimed
from engine.replay.records.history import History
from tests.hand.host import HandHost


class ReplayDiffers(AssertionError):
    """The code does not take the recorded way any more."""


class Onlooker(HandHost):
    """A host that lets the handler run over what is recorded, and refuses to go beyond."""

    def run_body(self, cycle: Cycle, operation: Any, *_: Any) -> None:
        raise ReplayDiffers(f"a replay of {cycle.claimed.id} runs the body of {operation.record.name}")


def replay(workflow: Workflow[Any, Any], claimed: Claimed, history: History, *, now_us: int) -> Cycle:
    """Return the cycle at its end. Raises ReplayDiffers where the handler goes on, or writes what was not there."""
    host = Onlooker(time_us=now_us)
    recorded = history.last_seq
    cycle = Cycle(host, workflow, claimed, history)
    try:
        cycle.begin()
        cycle.advance()
        new = [record for record in history.steps.values() if record.seq > recorded]
        if new:
            raise ReplayDiffers(f"a replay of {claimed.id} starts {[record.name for record in new]}")
        if cycle.writes.steps:
            raise ReplayDiffers(f"a replay of {claimed.id} goes on where it had ended: {cycle.writes.steps}")
        if cycle.exit.ending is None:
            raise ReplayDiffers(f"a replay of {claimed.id} does not come to its end")
    finally:
        cycle.loop.shut()
    return cycle
