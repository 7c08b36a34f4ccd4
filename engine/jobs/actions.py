"""What a bulk job can do to an instance, and to which instances it applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from engine.models import Instance
from engine.steer import lifecycle, restart, wake_ups
from engine.values.argument import Argument
from engine.values.errors import InvalidValueError, StepExhaustedError
from engine.values.states import ACTIONS, FINAL_SQL, Action, InstanceStatus, RollbackState


class BulkAction(StrEnum):
    """What a bulk job does to each of its instances."""

    RETRY = "retry"
    """Retry what failed: `retry_step`, `retry_rollback` if a rollback failed, `retry_now` while a step backs off, also
    beside others that run or wait."""
    PAUSE = "pause"
    RESUME = "resume"
    TERMINATE = "terminate"
    """With the argument `rollback=True`, after its rollbacks."""
    RESTART = "restart"
    """From the start. With the argument `keys="same"`, with the same idempotency keys."""


START = "start"
"""What a job does that starts instances (`engine.jobs.starting`): there is nothing yet to which it could apply."""
ROLLED_BACK = "rolled_back"


def _statuses(action: Action) -> str:
    return "(" + ", ".join(f"'{status}'" for status in sorted(ACTIONS[action])) + ")"


_PAUSES = f"""
    CASE WHEN i.status IN {_statuses(Action.PAUSE)} THEN ''
         WHEN i.status IN {FINAL_SQL} THEN 'finished' ELSE 'is_paused' END
"""
_NEEDS_DECISION = (
    f"i.status = 'paused' AND coalesce(i.pause_reason ->> 'type' = '{StepExhaustedError.__name__}', false)"
)
_RESUMES = f"""
    CASE WHEN {_NEEDS_DECISION} THEN 'needs_decision'
         WHEN i.status IN {_statuses(Action.RESUME)} THEN ''
         WHEN i.status IN {FINAL_SQL} THEN 'finished' ELSE 'not_paused' END
"""
# As `retry_now` looks for them. What waits for nothing but a retry is known without its steps.
_BACKS_OFF = """EXISTS (
             SELECT FROM engine_step s
             WHERE s.instance_id = i.key AND s.generation = i.generation AND s.kind = 'do'
               AND (s.status = 'waiting' OR s.rollback = 'running') AND s.wake_at > clock_timestamp())"""
# A step that was rolled back, even if only partly, cannot be retried with the key that it has spent.
_RETRIES = f"""
    CASE WHEN i.status IN ('errored', 'terminated') AND i.rollback = 'failed' THEN ''
         WHEN i.status = 'errored' AND i.rollback <> '' THEN '{ROLLED_BACK}'
         WHEN i.status = 'errored' THEN ''
         WHEN i.status IN {FINAL_SQL} THEN 'finished'
         WHEN {_NEEDS_DECISION} THEN ''
         WHEN i.status IN ('paused', 'waiting_for_pause') THEN 'is_paused'
         WHEN i.status = 'waiting' AND i.waiting_for = 'retry' THEN ''
         WHEN {_BACKS_OFF} THEN ''
         ELSE 'not_failed' END
"""
# Why an action does not apply to the row `i` of an instance, as a word; empty if it does.
REFUSAL: Mapping[str, str] = {
    BulkAction.RETRY: _RETRIES,
    BulkAction.PAUSE: _PAUSES,
    BulkAction.RESUME: _RESUMES,
    BulkAction.TERMINATE: f"CASE WHEN i.status IN {FINAL_SQL} THEN 'finished' ELSE '' END",
    BulkAction.RESTART: "''",
}


def checked(action: str, arguments: Mapping[str, Any]) -> tuple[BulkAction, dict[str, Any]]:
    """Return the action, and those of its arguments that are not the default. Raises InvalidValueError."""
    with Argument("action"):
        if action not in list(BulkAction):
            known = ", ".join(BulkAction)
            raise _refused("action", "unknown_action", f"There is no action {action!r}. There are {known}.")
    given = {name: value for name, value in arguments.items() if value is not None}
    for name, value in given.items():
        with Argument(name):
            goes_with, allowed = _ARGUMENTS[name]
            if action != goes_with:
                raise _refused(name, "not_of_this_action", f'Only the action "{goes_with}" has it.')
            if value not in allowed:
                raise _refused(
                    name, "unknown_value", f"It must be {' or '.join(repr(one) for one in allowed)}."
                )
    return BulkAction(action), {name: value for name, value in given.items() if value not in (False, "new")}


def perform(action: str, arguments: Mapping[str, Any], row: Instance, **cause: Any) -> None:
    """Do it to one instance, which the caller has locked. Raises what the function of that action raises."""
    _function(action, row)(row, **arguments, **cause)


def _function(action: str, row: Instance) -> Callable[..., object]:
    if action != BulkAction.RETRY:
        return _FUNCTIONS[BulkAction(action)]
    if row.is_finished and row.rollback == RollbackState.FAILED:
        return lifecycle.retry_rollback
    failed = row.is_finished or row.status == InstanceStatus.PAUSED
    return restart.retry_step if failed else wake_ups.retry_now


def _refused(what: str, code: str, message: str) -> InvalidValueError:
    return InvalidValueError("$", code, message, what=what, problem="is not valid")


_FUNCTIONS: Mapping[BulkAction, Callable[..., object]] = {
    BulkAction.PAUSE: lifecycle.pause,
    BulkAction.RESUME: lifecycle.resume,
    BulkAction.TERMINATE: lifecycle.terminate,
    BulkAction.RESTART: restart.restart,
}
_ARGUMENTS: Mapping[str, tuple[BulkAction, tuple[Any, ...]]] = {
    "rollback": (BulkAction.TERMINATE, (True, False)),
    "keys": (BulkAction.RESTART, (restart.NEW, restart.SAME)),
}
