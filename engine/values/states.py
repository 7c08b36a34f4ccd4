"""The states of instances, steps and attempts, and the transitions between them (docs/guarantees.md)."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType


class InstanceStatus(StrEnum):
    """The status of an instance."""

    QUEUED = "queued"
    """It is due and waits for a worker. It stays so while `max_running` of its workflow leaves no room, its
    workflow is not declared by any worker, or no worker runs."""
    RUNNING = "running"
    """A worker holds it: its handler runs, or a body of it. Also while its rollbacks run."""
    WAITING = "waiting"
    """It is parked and takes no room in a worker. `waiting_for` says for what."""
    WAITING_FOR_PAUSE = "waiting_for_pause"
    """It was paused while bodies ran. The worker starts nothing new; it is paused as soon as they have ended and
    are recorded."""
    PAUSED = "paused"
    """Nothing happens until it is resumed. `pause_reason` says why, if the engine has paused it."""
    COMPLETE = "complete"
    """Its handler returned, or called `step.complete`. Final."""
    ERRORED = "errored"
    """Its handler raised an error that it did not catch, or it timed out. `error` says why. Its rollbacks are over.
    Final."""
    TERMINATED = "terminated"
    """People or programs ended it, its parent ended, or its handler called `step.abort`. Final."""


class WaitingFor(StrEnum):
    """What a `waiting` instance waits for."""

    SLEEP = "sleep"
    """The end of `step.sleep` or `step.sleep_until`."""
    EVENT = "event"
    """An event, or the answer to a request."""
    RETRY = "retry"
    """The next attempt of a step, after its back-off."""
    CHILD = "child"
    """A child or another instance."""


class StepStatus(StrEnum):
    """The status of a step."""

    RUNNING = "running"
    """An attempt of its body runs, or items of a map do."""
    WAITING = "waiting"
    """It waits: for the end of a sleep or back-off, an event, an answer, another instance, or, with its attempts
    used up, for a person's decision."""
    COMPLETE = "complete"
    """It has a result, which no replay computes again. Final."""
    ERRORED = "errored"
    """It failed for good: its attempts are used up, the error is not retried, or the wait timed out. Final."""
    CANCELLED = "cancelled"
    """It was given up: the handler cancelled it or ended without it, or the instance was terminated. Final."""


class AttemptStatus(StrEnum):
    """The status of an attempt."""

    RUNNING = "running"
    """Recorded before the body starts."""
    COMPLETE = "complete"
    """The body returned, and its result was stored."""
    ERRORED = "errored"
    """The body raised an error, or its result could not be stored."""
    TIMED_OUT = "timed_out"
    """The body took longer than the step's `timeout`."""
    LOST = "lost"
    """Its worker died. It does not count towards `max_attempts`."""
    CANCELLED = "cancelled"
    """The step was given up, or the worker was stopped before the body had ended. It does not count towards
    `max_attempts`."""


class StepKind(StrEnum):
    """The kind of a step: which call of `step` made it."""

    DO = "do"
    """`step.do`, `step.run`, and each item of a map or batch."""
    SLEEP = "sleep"
    """`step.sleep` and `step.sleep_until`."""
    EVENT = "event"
    """`step.wait_for_event` and `step.listen`."""
    REQUEST = "request"
    """`step.request`."""
    CHILD = "child"
    """`step.run_workflow`, `step.spawn` and `step.wait_for_instance`."""
    PARALLEL = "parallel"
    """`step.parallel`; each branch is a child below it."""
    MAP = "map"
    """`step.map`, `step.for_each` and `step.batch`; each item is a step of kind do below it."""
    PROGRESS = "progress"
    """`step.progress`."""


class RollbackState(StrEnum):
    """The state of rollbacks, of an instance and of each step."""

    NONE = ""
    """No rollback has started."""
    RUNNING = "running"
    """Rollbacks run, or wait for their next attempt. Of a step: its own does."""
    COMPLETE = "complete"
    """All are done. Of a step: its own is."""
    FAILED = "failed"
    """One failed for good or was interrupted; those that come after it did not run. `retry_rollback()`
    continues."""


class EventState(StrEnum):
    """The state of an event."""

    BUFFERED = "buffered"
    """It was sent and waits for a wait of its type. A restart from a step returns the events of repeated waits here."""
    CONSUMED = "consumed"
    """Exactly one wait received it: `consumed_by` of `consumed_generation`."""
    DROPPED = "dropped"
    """A restart discarded it: one from the start every buffered event, one from a step only answers to requests. It is
    never delivered."""


class AttemptPhase(StrEnum):
    """What an attempt runs: the step's body, or its rollback."""

    DO = "do"
    """The body."""
    ROLLBACK = "rollback"
    """The rollback."""


class Action(StrEnum):
    """What people do to an instance, if the effect depends on its status."""

    PAUSE = "pause"
    RESUME = "resume"
    TERMINATE = "terminate"
    SEND_EVENT = "send_event"
    ACCEPT_CODE = "accept_code"
    RETRY_ROLLBACK = "retry_rollback"
    RETRY_STEP = "retry_step"
    FAIL_STEP = "fail_step"
    SKIP_STEP = "skip_step"
    RETRY_NOW = "retry_now"
    WAKE_NOW = "wake_now"
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
        (_R, _P): "code changed, attempts used up",
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
        (_P, _Q): "resume, rollback, restart, retry_step, fail_step, skip_step",
        (_P, _T): "terminate",
        (_C, _Q): "restart",
        (_E, _Q): "restart, retry_rollback, retry_step",
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
        (StepStatus.WAITING, StepStatus.COMPLETE): "arrived, skip_step",
        (StepStatus.WAITING, StepStatus.ERRORED): "timed out, failed, fail_step",
        (StepStatus.WAITING, StepStatus.CANCELLED): "given up",
        (StepStatus.ERRORED, StepStatus.WAITING): "retry_step of the step around it",
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
        Action.RETRY_STEP: frozenset({_P, _E}),  # where a step has failed, or its attempts are used up
        Action.FAIL_STEP: frozenset({_P}),  # where the attempts of a step are used up
        Action.SKIP_STEP: frozenset({_W, _P}),  # while a step has not ended, and no attempt runs
        Action.RETRY_NOW: frozenset({_Q, _R, _W}),  # while a step backs off
        Action.WAKE_NOW: frozenset({_Q, _R, _W}),  # while a step sleeps
        Action.RESTART: frozenset(InstanceStatus),
        Action.DELETE: FINAL,
    }
)


def allows(action: Action | str, status: InstanceStatus | str) -> bool:
    """Return whether the action has an effect on an instance in this status."""
    return InstanceStatus(status) in ACTIONS[Action(action)]
