"""What each action does in each status, by the tables of `engine.values.states`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.values.states import CHANGES, Action, InstanceStatus, allows
from tests.docs.made.text import table

NOTHING, DONE, GONE = "–", "✓", "deleted"


class Row(NamedTuple):
    """An action as people call it; `cause` is its name in the table of transitions."""

    action: Action
    cause: str
    refusal: str = ""  # the error where it has no effect; nothing happens without one
    refusal_if_paused: str = ""  # another one, while it is paused or being paused


ROWS: Mapping[str, Row] = {
    "`pause()`": Row(Action.PAUSE, "pause"),
    "`resume()`": Row(Action.RESUME, "resume"),
    "`terminate()`": Row(Action.TERMINATE, "terminate", "InstanceFinishedError"),
    "`terminate(rollback=True)`": Row(Action.TERMINATE, "rollback", "InstanceFinishedError"),
    "`send_event(…)`": Row(Action.SEND_EVENT, "send_event", "InstanceFinishedError"),
    "`accept_code()`": Row(Action.ACCEPT_CODE, "accept_code", "InstanceFinishedError"),
    "`retry_rollback()`": Row(Action.RETRY_ROLLBACK, "retry_rollback", "RollbackNotFailedError"),
    "`retry_step()`": Row(Action.RETRY_STEP, "retry_step", "StepNotFailedError"),
    "`fail_step(…)`": Row(Action.FAIL_STEP, "fail_step", "StepNotExhaustedError"),
    "`skip_step(…)`": Row(Action.SKIP_STEP, "skip_step", "StepNotSkippableError"),
    "`retry_now()`": Row(Action.RETRY_NOW, "retry_now", "NothingToRetryError", "InstancePausedError"),
    "`wake_now()`": Row(Action.WAKE_NOW, "wake_now", "NothingToWakeError", "InstancePausedError"),
    "`restart()`": Row(Action.RESTART, "restart"),
    "`delete()`": Row(Action.DELETE, "delete", "InstanceNotFinishedError"),
}


def actions() -> str:
    """List what each action does in each status."""
    heads = ["", *(f"`{status}`" for status in InstanceStatus)]
    rows = [[call, *(_effect(row, status) for status in InstanceStatus)] for call, row in ROWS.items()]
    return table(heads, rows)


def _effect(row: Row, status: InstanceStatus) -> str:
    if not allows(row.action, status):
        is_paused = status in (InstanceStatus.PAUSED, InstanceStatus.WAITING_FOR_PAUSE)
        refusal = (is_paused and row.refusal_if_paused) or row.refusal
        return f"[`{refusal}`](errors.md#{refusal.lower()})" if refusal else NOTHING
    if row.action is Action.DELETE:
        return GONE
    return next(
        (
            f"→ `{after}`"
            for (before, after), why in CHANGES.items()
            if before == status and row.cause in why.split(", ")
        ),
        DONE,
    )
