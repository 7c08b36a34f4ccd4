"""Instances that continue under other code than they started with (docs/guarantees.md, 4)."""

from __future__ import annotations

import json

from engine.replay.records.history import LogLine
from engine.replay.state import CycleState
from engine.values.errors import CodeChangedError

DIGITS = 7  # of a fingerprint, read as a number that fits into a PostgreSQL integer


def refusal(cycle: CycleState) -> CodeChangedError | None:
    """Return the error to pause with, if the workflow requires a person to accept the new code first."""
    if cycle.workflow.on_code_change != "pause" or not _has_changed(cycle):
        return None
    return CodeChangedError(
        cycle.workflow.name, recorded=cycle.claimed.code, current=cycle.workflow.fingerprint
    )


def note(cycle: CycleState) -> None:
    """Log, once for each new code, that the instance continues under it."""
    if not _has_changed(cycle):
        return
    recorded, current = cycle.claimed.code, cycle.workflow.fingerprint
    fields = json.dumps({"recorded": recorded, "current": current})
    text = "The workflow's code has changed since this instance started; it goes on under the new code."
    # Each code has a position of its own, outside those of the handler's lines: replays write the same line again.
    position = -1 - int(current[:DIGITS], 16)
    # It needs no flush of its own: a record follows in any case, if only the park.
    cycle.writes.logs.append(LogLine("warning", text, fields, cycle.host.now_us(), position=position))


def _has_changed(cycle: CycleState) -> bool:
    return cycle.claimed.code not in ("", cycle.workflow.fingerprint)
