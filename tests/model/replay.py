"""Replays a finished instance from what it has recorded: the handler must take the same way to the same end."""

from __future__ import annotations

from typing import Any

from engine.registry import Workflow
from engine.replay.cycle import Claimed, Cycle
from engine.worker import rows, sql
from tests.model.oracle import Broken, Oracle

INSTANCE = f"""
    SELECT key, workflow, id, generation, fence, 0, params::text, {sql._us("started_at")}, NULL::bigint,
        false, output::text
    FROM engine_instance WHERE key = %s
"""


class Reader:
    """A host that only watches."""

    name = "replay"

    def __init__(self, now_us: int) -> None:
        self._now_us = now_us

    def now_us(self) -> int:
        return self._now_us

    due_us = now_us

    def drive(self, cycle: Cycle) -> None:
        cycle.loop.drain()

    def run_body(self, cycle: Cycle, *_: Any) -> None:
        raise Broken(f"a replay of {cycle.claimed.key} runs a body")

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def replay(oracle: Oracle, workflow: Workflow[Any, Any], key: int, now_us: int) -> None:
    """Raise unless a replay ends as recorded and has nothing to write."""
    [(*facts, output)] = oracle.rows(INSTANCE, (key,))
    claimed = Claimed(*facts)
    which = {"keys": [key], "generations": [claimed.generation]}
    steps = oracle.rows(sql.HISTORY_STEPS, which)
    history = rows.histories([key], steps, [])[key]
    host: Any = Reader(now_us)
    cycle = Cycle(host, workflow, claimed, history)
    cycle.begin()
    cycle.advance()
    try:
        if cycle.writes.steps:
            raise Broken(f"a replay of {key} goes on where it had ended: {cycle.writes.steps}")
        if cycle.ending is None or cycle.ending.output != output:
            raise Broken(f"{key} ended with {output}, a replay of it with {cycle.ending}")
    finally:
        cycle.loop.shut()
