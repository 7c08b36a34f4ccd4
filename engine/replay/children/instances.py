"""`step.wait_for_instance`: wait for the end of any instance.

The flush that records the step also notes its instance in `engine_waiter`, for the worker that ends the other one. The
other one is read only after that commit, so its end is either seen here or announced by a signal.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from engine.declare.children import InstanceResult
from engine.declare.registry import workflows
from engine.replay.children.child import RelationOperation, error_of, other_call, reading, target
from engine.replay.records import outcomes
from engine.replay.records.history import StepRecord
from engine.replay.records.other_instances import AwaitedState, Origin
from engine.replay.state import CycleState
from engine.values.errors import ErrorRecord, InstanceNotFoundError, InstanceTimeoutError, StepConfigError
from engine.values.identity import check_instance_id, check_workflow_name
from engine.values.serialization.secret_context import opened
from engine.values.states import FINAL, StepStatus

WAIT = "wait_for_instance"  # the call, as recorded in the step's row
WHAT = "Argument of step.wait_for_instance"


class InstanceOperation(RelationOperation):
    """A call of `step.wait_for_instance`."""

    def __init__(
        self, cycle: CycleState, record: StepRecord, workflow: str, id: str, timeout_us: int | None
    ) -> None:
        super().__init__(cycle, record, reading(record, WAIT, read_result))
        self.workflow_name = workflow
        self.instance_id = id
        self.timeout_us = timeout_us

    @property
    def origin(self) -> Origin | None:
        """Return the step that started it, if it is a child of this instance, wherever its handle came from."""
        return self.cycle.relations.started(self.workflow_name, self.instance_id)

    def begin(self) -> None:
        cycle, record, is_new = self.cycle, self.record, not self.record.is_recorded
        problem = other_call(record, WAIT)
        if problem is not None:
            cycle.pause_with_reason(problem)
            return
        if is_new:
            said = {"operation": WAIT, "workflow": self.workflow_name, "id": self.instance_id}
            record.options = json.dumps(said)
            record.status = StepStatus.WAITING
            if self.timeout_us is not None:
                record.wake_us = record.started_us + self.timeout_us
            self._note()
        else:
            cycle.relations.expire()
        self.workflow_name, self.instance_id = target(record)
        cycle.relations.add(record.seq, self)
        cycle.wait_until(self, record.wake_us, is_new=is_new)

    def _note(self) -> None:
        """Ask to be told of the end of that instance, and read its state once that is committed."""
        self.cycle.writes.waiters[self.record.seq] = self.whom
        self.cycle.writes.then.append(self._noted)
        self.cycle.relations.note(self.record.seq)
        self.cycle.host.flush(self.cycle)

    def _noted(self, left_out: bool) -> None:
        self.cycle.relations.noted(self.record.seq, has_begun=not left_out)
        if not left_out:
            self.cycle.host.poke(self.cycle)

    def fire(self) -> None:
        """Read its state again: it may have ended before the deadline."""
        self.cycle.relations.expire()

    def learn(self, found: AwaitedState, as_of_us: int) -> None:
        deadline = self.record.wake_us
        if found.status is None:
            self._refuse(InstanceNotFoundError(self.workflow_name, self.instance_id))
        elif found.status in FINAL and (deadline is None or (found.finished_us or 0) <= deadline):
            self.cycle.conclude(self, output=self._result(found))
        elif deadline is not None and deadline <= as_of_us:
            # The length that the call gives, if it still gives one: a pause moves the deadline.
            length_us = deadline - self.record.started_us if self.timeout_us is None else self.timeout_us
            timeout = timedelta(microseconds=length_us)
            self._refuse(
                InstanceTimeoutError(self.record.name, self.workflow_name, self.instance_id, timeout)
            )
        elif not found.is_noted:
            self._note()

    def _result(self, found: AwaitedState) -> str:
        kept = error_of(found.error)
        head = {
            "workflow": self.workflow_name,
            "id": self.instance_id,
            "status": found.status,
            "error": None if kept is None else kept.to_json(),
        }
        return f'{json.dumps(head)[:-1]}, "output": {found.output or "null"}}}'  # as it was stored

    def _refuse(self, error: InstanceNotFoundError | InstanceTimeoutError) -> None:
        self.cycle.conclude(self, error=outcomes.error_json(error, step=self.record.name))

    def recorded_error(self) -> Exception:
        kept = json.loads(self.record.error or "{}")
        said = kept.get("details") or {}
        if kept.get("type") == InstanceNotFoundError.__name__:
            return InstanceNotFoundError(said["workflow"], said["id"])
        if kept.get("type") == InstanceTimeoutError.__name__:
            timeout = timedelta(seconds=said["timeout"])
            return InstanceTimeoutError(self.record.name, said["workflow"], said["id"], timeout)
        return outcomes.recorded_error(self.record)


def read_result(text: str) -> InstanceResult:
    """Return the recorded result, with the output as its workflow's type if this code has that workflow."""
    data = json.loads(text)
    output, error = data["output"], data["error"]
    if data["status"] == "complete" and data["workflow"] in workflows:
        output = workflows[data["workflow"]].output.decode(json.dumps(output))
    else:
        output = opened(output)
    return InstanceResult(
        data["workflow"],
        data["id"],
        data["status"],
        output,
        None if error is None else ErrorRecord.from_json(error),
    )


def meant(cycle: CycleState, handle: Any, workflow: object, id: object) -> tuple[str, str]:
    """Return the workflow and the id of the instance.

    Raises StepConfigError, also for the caller itself, and InvalidNameError for names that no instance can have.
    """
    if handle is not None and (workflow is not None or id is not None):
        raise StepConfigError("handle", handle, "Give a handle, or workflow= and id=, not both.", what=WHAT)
    if handle is not None:
        name, which = getattr(handle, "workflow", None), getattr(handle, "id", None)
    else:
        name, which = getattr(workflow, "name", workflow), id
    if not isinstance(name, str) or not isinstance(which, str):
        rule = "Give what step.spawn returned, an Instance, or workflow= and id=."
        raise StepConfigError("handle", (workflow, id) if handle is None else handle, rule, what=WHAT)
    check_workflow_name(name)
    check_instance_id(which)
    if (name, which) == (cycle.claimed.workflow, cycle.claimed.id):
        raise StepConfigError(
            "id", which, "An instance cannot wait for itself: it would never end.", what=WHAT
        )
    return name, which
