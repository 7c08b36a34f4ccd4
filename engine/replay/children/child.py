"""Children: instances that a step starts, `step.run_workflow` and `step.spawn`.

A child is inserted by the flush that records its step, so neither exists without the other. Its id is derived from the
step, so a replay finds it. A signal tells the parent of its end (see `engine.worker.parent_notices`).
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings

from engine.declare.children import Handle
from engine.declare.params import validate_params
from engine.replay.calls.call import Owner
from engine.replay.calls.unawaited import check_awaited
from engine.replay.operations.operation import Operation
from engine.replay.records import outcomes
from engine.replay.records.history import StepRecord
from engine.replay.records.other_instances import Awaited, AwaitedState, NewChild, Origin
from engine.replay.state import CycleState
from engine.replay.waiting.relations import RUN, SPAWN
from engine.values.errors import ChildWorkflowError, ErrorRecord, LimitError, NonDeterminismError
from engine.values.identity import child_id
from engine.values.serialization import JSON
from engine.values.states import FINAL, InstanceStatus, StepStatus, WaitingFor

if TYPE_CHECKING:
    from engine.declare.registry import Workflow

MAX_DEPTH = 20
DELETED = "deleted"  # the status of a child that no longer exists
MAX_ERROR_DETAILS = 4_096  # characters of a child's error that its parent keeps
MICROSECOND = timedelta(microseconds=1)


class RelationOperation(Operation):
    """A call that waits for the end of an instance."""

    waiting_for = WaitingFor.CHILD

    workflow_name: str
    instance_id: str

    @property
    @abstractmethod
    def origin(self) -> Origin | None:
        """Return the step whose child it must be; None if it may be any instance of that name."""

    @property
    def whom(self) -> Awaited:
        return Awaited(self.workflow_name, self.instance_id, self.origin)

    @abstractmethod
    def learn(self, found: AwaitedState, as_of_us: int) -> None:
        """Handle what the database said when asked at this time or later."""

    def closed(self) -> None:
        self.cycle.relations.remove(self.record.seq)


class ChildOperation(RelationOperation):
    """A call of `step.run_workflow`, or a branch of `step.parallel`."""

    def __init__(
        self,
        cycle: CycleState,
        record: StepRecord,
        workflow: Workflow[Any, Any],
        params: str | None,
        *,
        owner: Owner | None = None,
    ) -> None:
        super().__init__(cycle, record, reading(record, RUN, workflow.output.decode), owner=owner)
        self.workflow = workflow
        self.params = params

    @property
    def origin(self) -> Origin:
        return Origin(self.cycle.claimed.generation, self.record.seq)

    def begin(self) -> None:
        """Start the child, or wait for the one that is recorded."""
        cycle, record = self.cycle, self.record
        problem = other_call(record, RUN)
        if problem is not None:
            cycle.pause_with_reason(problem)
            return
        if record.is_recorded:
            cycle.relations.expire()
        else:
            record.status = StepStatus.WAITING
            start(cycle, self, self.workflow, self.params, RUN, is_tied=True)
            cycle.record(record)
        self.workflow_name, self.instance_id = target(record)
        cycle.relations.add(record.seq, self)

    def learn(self, found: AwaitedState, as_of_us: int) -> None:
        if found.status == InstanceStatus.COMPLETE:
            self.cycle.conclude(self, output=found.output)
        elif found.status is None or found.status in FINAL:
            error = ChildWorkflowError(
                self.record.name,
                self.workflow_name,
                self.instance_id,
                found.status or DELETED,
                error_of(found.error),
            )
            self.cycle.conclude(self, error=error_json(error))

    def recorded_error(self) -> Exception:
        return read_error(self.record)


class SpawnOperation(Operation):
    """A call of `step.spawn`: complete as soon as the child is recorded."""

    waiting_for = WaitingFor.CHILD

    def __init__(
        self,
        cycle: CycleState,
        record: StepRecord,
        workflow: Workflow[Any, Any],
        params: str | None,
        *,
        owner: Owner | None = None,
    ) -> None:
        super().__init__(cycle, record, reading(record, SPAWN, read_handle), owner=owner)
        self.workflow = workflow
        self.params = params

    def begin(self) -> None:
        problem = other_call(self.record, SPAWN)
        if problem is not None:
            self.cycle.pause_with_reason(problem)
            return
        if not self.record.is_recorded:
            start(self.cycle, self, self.workflow, self.params, SPAWN, is_tied=False)
        which = dict(zip(("workflow", "id"), target(self.record), strict=True))
        self.cycle.conclude(self, output=json.dumps(which))


def start(
    cycle: CycleState,
    operation: Operation,
    workflow: Workflow[Any, Any],
    params: str | None,
    call: str,
    *,
    is_tied: bool,
) -> None:
    """Insert the child with the row of the step, which names it."""
    facts = cycle.claimed
    name = child_id(
        facts.key, facts.workflow, facts.id, facts.generation, operation.path, secret=settings.SECRET_KEY
    )
    operation.record.options = json.dumps({"operation": call, "workflow": workflow.name, "id": name})
    cycle.relations.starts(workflow.name, name, Origin(facts.generation, operation.record.seq))
    cycle.writes.children[operation.record.seq] = NewChild(
        workflow=workflow.name,
        id=name,
        params="null" if params is None else params,
        code=workflow.fingerprint,
        timeout_us=None if workflow.timeout is None else workflow.timeout // MICROSECOND,
        is_tied=is_tied,
        depth=facts.depth + 1,
    )


def params_of(
    cycle: CycleState, record: StepRecord, workflow: Workflow[Any, Any], params: object
) -> str | None:
    """Return the checked params of a new child; None if it is already recorded, whatever the call says now.

    Raises LimitError for a child at a depth over 20, and what `workflow.start` raises for wrong params.
    """
    if record.is_recorded:
        return None
    depth = cycle.claimed.depth + 1
    if depth > MAX_DEPTH:
        advice = "Does a workflow start itself? Spawned children count as well."
        raise LimitError("depth of children", depth, MAX_DEPTH, advice=advice)
    check_awaited("it was passed to a child", params)
    return validate_params(workflow, params)


def target(record: StepRecord) -> tuple[str, str]:
    """Return workflow and id of the instance that the step started or waits for."""
    said = json.loads(record.options or "{}")
    return said["workflow"], said["id"]


def other_call(record: StepRecord, call: str) -> NonDeterminismError | None:
    """Return an error if the step was recorded by another call of the same kind, with another result."""
    recorded = json.loads(record.options or "{}").get("operation", call)
    if recorded == call:
        return None
    return NonDeterminismError(
        f'Step "{record.name}" was recorded by step.{recorded} and is now called by step.{call}. Rename it.',
        recorded=recorded,
        current=call,
    )


def reading(record: StepRecord, call: str, decode: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a reader for the outcome of a call. It raises NonDeterminismError for the outcome of another call."""

    def read(text: str) -> Any:
        problem = other_call(record, call)
        if problem is not None:
            raise problem
        return decode(text)

    return read


def read_handle(text: str) -> Handle:
    data = json.loads(text)
    return Handle(data["workflow"], data["id"])


# Errors


def error_of(text: str | None) -> ErrorRecord | None:
    """Return the recorded error of an instance, without its traceback, and without details that are too large."""
    if text is None:
        return None
    kept = ErrorRecord.from_json(json.loads(text))
    details = kept.details if len(json.dumps(kept.details)) <= MAX_ERROR_DETAILS else {}
    return ErrorRecord(kept.type, kept.message, details)


def error_json(error: ChildWorkflowError) -> str:
    """Return what a step records about a child that did not complete."""
    why: JSON = None if error.error is None else error.error.to_json()
    details: dict[str, JSON] = {
        "workflow": error.workflow,
        "id": error.id,
        "status": error.status,
        "error": why,
        "index": error.index,
    }
    return outcomes.kept_json(ErrorRecord(type(error).__name__, str(error), details), step=error.step)


def read_error(record: StepRecord) -> Exception:
    """Return the error that the handler gets."""
    kept = json.loads(record.error or "{}")
    said = kept.get("details") or {}
    if kept.get("type") != ChildWorkflowError.__name__:
        return outcomes.recorded_error(record)
    why = said.get("error")
    return ChildWorkflowError(
        record.name,
        said["workflow"],
        said["id"],
        said["status"],
        None if why is None else ErrorRecord.from_json(why),
        index=said.get("index"),
    )
