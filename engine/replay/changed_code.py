"""An instance that is taken on by other code than it started under (docs/guarantees.md, 4)."""

from __future__ import annotations

import json

from engine.replay.records.history import LogLine
from engine.replay.state import CycleState
from engine.values.errors import CodeChangedError

DIGITS = 7  # of a fingerprint, read as a number: they fit an integer of PostgreSQL's


def refusal(cycle: CycleState) -> CodeChangedError | None:
    """Tell why the instance may not go on: its workflow wants somebody to accept the new code first."""
    if cycle.workflow.on_code_change != "pause" or not _has_changed(cycle):
        return None
    return CodeChangedError(
        cycle.workflow.name, recorded=cycle.claimed.code, current=cycle.workflow.fingerprint
    )


def note(cycle: CycleState) -> None:
    """Say in the instance's log that it goes on under other code, once for each."""
    if not _has_changed(cycle):
        return
    recorded, current = cycle.claimed.code, cycle.workflow.fingerprint
    fields = json.dumps({"recorded": recorded, "current": current})
    text = "The workflow's code has changed since this instance started; it goes on under the new code."
    # A place of its own for each code, where the handler's lines have none: written at every replay, it is there once.
    position = -1 - int(current[:DIGITS], 16)
    # No flush of its own: some record follows in any case, and be it the parking.
    cycle.writes.logs.append(LogLine("warning", text, fields, cycle.host.now_us(), position=position))


def _has_changed(cycle: CycleState) -> bool:
    return cycle.claimed.code not in ("", cycle.workflow.fingerprint)
