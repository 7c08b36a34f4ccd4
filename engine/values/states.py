"""The states of instances, steps and attempts, and the transitions between them (docs/guarantees.md)."""

from collections.abc import Iterable, Mapping
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
    """What a `waiting` instance waits for."""

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
    """The state of rollbacks; `NONE` (the empty string) if none has started."""

    NONE = ""
    RUNNING = "running"
    COMPLETE = "complete"
    FAILED = "failed"


class AttemptPhase(StrEnum):
    """What an attempt runs: the step's body, or its rollback."""

    DO = "do"
    ROLLBACK = "rollback"


class Action(StrEnum):
    """What people do to an instance, if the effect depends on its status."""

    PAUSE = "pause"
    RESUME = "resume"
    TERMINATE = "terminate"
    SEND_EVENT = "send_event"
    ACCEPT_CODE = "accept_code"
    RETRY_ROLLBACK = "retry_rollback"
    RESTART = "restart"
    DELETE = "delete"


OPEN_STEPS = frozenset({StepStatus.RUNNING, StepStatus.WAITING})
FINAL = frozenset({InstanceStatus.COMPLETE, InstanceStatus.ERRORED, InstanceStatus.TERMINATED})
FINAL_STEPS = frozenset({StepStatus.COMPLETE, StepStatus.ERRORED, StepStatus.CANCELLED})


def _as_sql(statuses: Iterable[str]) -> str:
    return "(" + ", ".join(f"'{status}'" for status in sorted(statuses)) + ")"


# The same for SQL: `status IN …`.
FINAL_SQL, OPEN_STEPS_SQL = _as_sql(FINAL), _as_sql(OPEN_STEPS)

_Q, _R, _W = InstanceStatus.QUEUED, InstanceStatus.RUNNING, InstanceStatus.WAITING
_WP, _P = InstanceStatus.WAITING_FOR_PAUSE, InstanceStatus.PAUSED
_C, _E, _T = InstanceStatus.COMPLETE, InstanceStatus.ERRORED, InstanceStatus.TERMINATED

# The transitions that a row may make from one commit to the next, and their causes. engine/README.md draws these
# tables.
#
# A restart leads from any status to `queued`, in a new generation. `rollback`: terminated with its rollbacks first.
# `returns` and `fails` are done by the handler, possibly before it learns of a pause.
CHANGES: Mapping[tuple[InstanceStatus, InstanceStatus], str] = MappingProxyType(
    {
        (_Q, _R): "claimed",
        (_Q, _P): "pause",
        (_Q, _T): "terminate",
        (_R, _W): "parks",
        (_R, _Q): "released, lost, restart",
        (_R, _WP): "pause",
        (_R, _P): "other code",
        (_R, _C): "returns",
        (_R, _E): "fails",
        (_R, _T): "terminate, abort",
        (_W, _R): "claimed",
        (_W, _Q): "held back, rollback, restart",
        (_W, _P): "pause",
        (_W, _T): "terminate",
        (_WP, _R): "resume, rollback",
        (_WP, _Q): "restart",
        (_WP, _P): "bodies end",
        (_WP, _C): "returns",
        (_WP, _E): "fails",
        (_WP, _T): "terminate, abort",
        (_P, _Q): "resume, rollback, restart",
        (_P, _T): "terminate",
        (_C, _Q): "restart",
        (_E, _Q): "restart, retry_rollback",
        (_T, _Q): "restart, retry_rollback",
    }
)
BEGINNINGS: Mapping[InstanceStatus, str] = MappingProxyType({_Q: "start, a schedule, a parent"})

# A row that changes twice before a flush is written once, in its latest state. So a step may start in its final status.
STEP_CHANGES: Mapping[tuple[StepStatus, StepStatus], str] = MappingProxyType(
    {
        (StepStatus.RUNNING, StepStatus.WAITING): "backs off",
        (StepStatus.RUNNING, StepStatus.COMPLETE): "returned",
        (StepStatus.RUNNING, StepStatus.ERRORED): "failed for good",
        (StepStatus.RUNNING, StepStatus.CANCELLED): "given up",
        (StepStatus.WAITING, StepStatus.RUNNING): "next attempt",
        (StepStatus.WAITING, StepStatus.COMPLETE): "arrived",
        (StepStatus.WAITING, StepStatus.ERRORED): "timed out, failed",
        (StepStatus.WAITING, StepStatus.CANCELLED): "given up",
    }
)
STEP_BEGINNINGS: Mapping[StepStatus, str] = MappingProxyType(
    {
        StepStatus.RUNNING: "a body, items",
        StepStatus.WAITING: "something to wait for",
        StepStatus.COMPLETE: "at once, or kept",
        StepStatus.ERRORED: "at once, or kept",
        StepStatus.CANCELLED: "at once",
    }
)

# A finished attempt never changes.
ATTEMPT_CHANGES: Mapping[tuple[AttemptStatus, AttemptStatus], str] = MappingProxyType(
    {
        (AttemptStatus.RUNNING, AttemptStatus.COMPLETE): "the body returned",
        (AttemptStatus.RUNNING, AttemptStatus.ERRORED): "the body raised",
        (AttemptStatus.RUNNING, AttemptStatus.TIMED_OUT): "the body took too long",
        (AttemptStatus.RUNNING, AttemptStatus.LOST): "its worker died",
        (AttemptStatus.RUNNING, AttemptStatus.CANCELLED): "given up, drained",
    }
)
ATTEMPT_BEGINNINGS: Mapping[AttemptStatus, str] = MappingProxyType(
    {
        AttemptStatus.RUNNING: "before its body starts",
        AttemptStatus.ERRORED: "cannot be called",
        AttemptStatus.CANCELLED: "at once",
    }
)

# The statuses in which an action has an effect. In others, pause and resume do nothing, and the rest raise.
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


def allows(action: Action | str, status: InstanceStatus | str) -> bool:
    """Return whether the action has an effect on an instance in this status."""
    return InstanceStatus(status) in ACTIONS[Action(action)]
