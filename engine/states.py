"""The states of instances, steps and attempts, and the changes between them (CONTRACT.md, section 4)."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class InstanceStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    WAITING_FOR_PAUSE = "waiting_for_pause"
    PAUSED = "paused"
    COMPLETE = "complete"
    ERRORED = "errored"
    TERMINATED = "terminated"


class WaitingFor(StrEnum):
    """Say what a `waiting` instance waits for."""

    SLEEP = "sleep"
    EVENT = "event"
    RETRY = "retry"
    CHILD = "child"


class StepStatus(StrEnum):
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETE = "complete"
    ERRORED = "errored"
    CANCELLED = "cancelled"


class AttemptStatus(StrEnum):
    RUNNING = "running"
    COMPLETE = "complete"
    ERRORED = "errored"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    CANCELLED = "cancelled"


class StepKind(StrEnum):
    DO = "do"
    SLEEP = "sleep"
    EVENT = "event"
    REQUEST = "request"
    CHILD = "child"
    PARALLEL = "parallel"
    MAP = "map"
    PROGRESS = "progress"


class RollbackState(StrEnum):
    """Tell how far the rollbacks are; `NONE` (the empty text) where none has begun."""

    NONE = ""
    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"


class AttemptPhase(StrEnum):
    """Say what an attempt runs: the step's body, or its rollback."""

    DO = "do"
    ROLLBACK = "rollback"


class Action(StrEnum):
    """Name what people do to an instance whose answer depends on its status."""

    PAUSE = "pause"
    RESUME = "resume"
    TERMINATE = "terminate"
    SEND_EVENT = "send_event"
    ACCEPT_CODE = "accept_code"
    RETRY_ROLLBACK = "retry_rollback"
    RESTART = "restart"
    DELETE = "delete"


FINAL = frozenset({InstanceStatus.COMPLETE, InstanceStatus.ERRORED, InstanceStatus.TERMINATED})

_Q, _R, _W = InstanceStatus.QUEUED, InstanceStatus.RUNNING, InstanceStatus.WAITING
_WP, _P = InstanceStatus.WAITING_FOR_PAUSE, InstanceStatus.PAUSED
_C, _E, _T = InstanceStatus.COMPLETE, InstanceStatus.ERRORED, InstanceStatus.TERMINATED

# Any status leads to `queued` by a restart, which begins a new generation; final ones also when a failed rollback is
# retried.
TRANSITIONS: Mapping[InstanceStatus, frozenset[InstanceStatus]] = MappingProxyType(
    {
        _Q: frozenset({_R, _P, _T, _E}),
        _R: frozenset({_W, _Q, _WP, _C, _E, _T, _P}),
        _W: frozenset({_R, _Q, _P, _T}),
        _WP: frozenset({_R, _Q, _P, _C, _E, _T}),
        _P: frozenset({_Q, _T}),
        _C: frozenset({_Q}),
        _E: frozenset({_Q}),
        _T: frozenset({_Q}),
    }
)

# Where an action has an effect. Elsewhere pause and resume do nothing; the others raise.
ACTIONS: Mapping[Action, frozenset[InstanceStatus]] = MappingProxyType(
    {
        Action.PAUSE: frozenset({_Q, _R, _W}),
        Action.RESUME: frozenset({_P, _WP}),
        Action.TERMINATE: frozenset(InstanceStatus) - FINAL,
        Action.SEND_EVENT: frozenset(InstanceStatus) - FINAL,
        Action.ACCEPT_CODE: frozenset(InstanceStatus) - FINAL,
        Action.RETRY_ROLLBACK: frozenset({_E, _T}),  # where the rollback failed
        Action.RESTART: frozenset(InstanceStatus),
        Action.DELETE: FINAL,
    }
)


def can(before: InstanceStatus | str, after: InstanceStatus | str) -> bool:
    """Tell whether an instance may go from one status to another; staying is no transition."""
    return InstanceStatus(after) in TRANSITIONS[InstanceStatus(before)]


def allows(action: Action | str, status: InstanceStatus | str) -> bool:
    """Tell whether the action has an effect on an instance in this status."""
    return InstanceStatus(status) in ACTIONS[Action(action)]
