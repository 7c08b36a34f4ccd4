"""Replays a finished instance from what it has recorded: the handler must take the same way to the same end."""

from __future__ import annotations

from typing import Any

from engine.declare.registry import Workflow
from engine.replay.host import Claimed
from engine.values.columns import microseconds
from engine.worker.database import history_sql, rows
from tests.golden import replay as golden
from tests.model.oracle import Broken, Oracle

INSTANCE = f"""
    SELECT key, workflow, id, generation, fence, 0, params::text, {microseconds("started_at")}, NULL::bigint,
        false, output::text
    FROM engine_instance WHERE key = %s
"""


def replay(oracle: Oracle, workflow: Workflow[Any, Any], key: int, now_us: int) -> None:
    """Raise unless a replay ends as recorded and has nothing to write."""
    [(*facts, output)] = oracle.rows(INSTANCE, (key,))
    claimed = Claimed(*facts)
    which = {"keys": [key], "generations": [claimed.generation]}
    history = rows.histories([key], oracle.rows(history_sql.HISTORY_STEPS, which))[key]
    try:
        cycle = golden.replay(workflow, claimed, history, now_us=now_us)
    except golden.ReplayDiffers as problem:
        raise Broken(str(problem)) from problem
    if cycle.exit.ending is None or cycle.exit.ending.output != output:
        raise Broken(f"{key} ended with {output}, a replay of it with {cycle.exit.ending}")
