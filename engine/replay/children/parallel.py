"""`step.parallel`: run children side by side, until all are complete or the first one fails."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from engine.declare.children import Branch
from engine.declare.params import FromStore, validate_params
from engine.replay.calls.call import Call
from engine.replay.children.child import (
    ChildOperation,
    SpawnOperation,
    error_json,
    params_of,
    read_error,
)
from engine.replay.operations.operation import Operation
from engine.replay.records import outcomes
from engine.replay.records.history import StepRecord
from engine.replay.state import CycleState
from engine.values.errors import (
    ChildWorkflowError,
    LimitError,
    NonDeterminismError,
    RepriseError,
    StepConfigError,
)
from engine.values.identity import COMPENSATE, StepIdentity
from engine.values.serialization import JSON
from engine.values.states import StepKind, StepStatus, WaitingFor

OnFailure = Literal["leave", "terminate"]
MAX_BRANCHES = 100
MAX_PARAMS = 64 * 1024 * 1024  # characters, of all branches


class ParallelOperation(Operation):
    """A call of `step.parallel`. Its row has the number of branches; each branch is an inner step."""

    waiting_for = WaitingFor.CHILD

    def __init__(
        self,
        cycle: CycleState,
        record: StepRecord,
        branches: Sequence[Branch],
        params: Sequence[str | None],
        on_failure: OnFailure,
    ) -> None:
        super().__init__(cycle, record, self._outputs)
        self.branches = branches
        self.params = params
        self.on_failure = on_failure

    def begin(self) -> None:
        record = self.record
        if not record.is_recorded:
            record.status = StepStatus.WAITING
            said = {"operation": "parallel", "branches": len(self.branches), "on_failure": self.on_failure}
            record.options = json.dumps(said)
            self.cycle.record(record)
        elif json.loads(record.options or "{}").get("branches") != len(self.branches):
            self.cycle.pause_with_reason(self._changed())
            return
        for index, (branch, params) in enumerate(zip(self.branches, self.params, strict=True)):
            inner = self._record_of(StepKind.CHILD, record.name, index)
            if not inner.is_final:
                self.cycle.start(ChildOperation(self.cycle, inner, branch.workflow, params, owner=self))
        self._maybe_complete()

    def inner(self) -> Iterable[StepRecord]:
        return [
            self._record_of(StepKind.CHILD, self.record.name, index) for index in range(len(self.branches))
        ]

    def settled(self, operation: Call) -> None:
        """Handle the end of a branch."""
        if self.record.is_final:
            return  # a compensation has been started
        if operation.record.status == StepStatus.ERRORED:
            self._fail(operation)
        else:
            self._maybe_complete()

    def recorded_error(self) -> Exception:
        return read_error(self.record)

    def _maybe_complete(self) -> None:
        if all(one.status == StepStatus.COMPLETE for one in self.inner()):
            self.cycle.conclude(self, output=json.dumps(len(self.branches)))

    def _fail(self, failed: Call) -> None:
        error = read_error(failed.record)
        assert isinstance(error, ChildWorkflowError)
        index = failed.record.count - 1
        about = ChildWorkflowError(
            self.record.name, error.workflow, error.id, error.status, error.error, index=index
        )
        # Cancel the other branches first: compensations come after whatever these may still do.
        self.cycle.cancel_inner(self)
        self.cycle.conclude(self, error=error_json(about))
        self._compensate(about)

    def _compensate(self, error: ChildWorkflowError) -> None:
        """Start the compensations of complete branches, the last declared first."""
        for index in range(len(self.branches) - 1, -1, -1):
            undo = self.branches[index].compensate_with
            done = self._record_of(StepKind.CHILD, self.record.name, index)
            if undo is None or done.status != StepStatus.COMPLETE:
                continue
            record = self._record_of(StepKind.CHILD, COMPENSATE, index)
            about: JSON = {
                "branch": self.branches[index].workflow.name,
                "index": index,
                "output": json.loads(done.output or "null"),
                "error": None if error.error is None else error.error.to_json(),
            }
            operation = SpawnOperation(self.cycle, record, undo, None, owner=self)
            try:
                operation.params = validate_params(undo, FromStore(about))
            except RepriseError as problem:
                # The handler can do nothing about it: the step records why nothing compensates.
                self.cycle.number(record)
                text = outcomes.error_json(problem, step=COMPENSATE)
                self.cycle.conclude(operation, error=text)
            else:
                self.cycle.start(operation)
            # The handler did not start it, so no replay would repeat it: a pause must not leave it out.
            self.cycle.writes.starts.discard(record.seq)

    def _changed(self) -> NonDeterminismError:
        recorded = json.loads(self.record.options or "{}").get("branches")
        return NonDeterminismError(
            f'Step "{self.record.name}" was started with another number of branches.',
            recorded=f"{recorded} branches",
            current=f"{len(self.branches)} branches",
        )

    def _record_of(self, kind: StepKind, name: str, index: int) -> StepRecord:
        identity = StepIdentity(self.record.seq, kind, name, index + 1)
        record = self.cycle.history.steps.get(identity)
        if record is None:
            record = StepRecord(0, *identity, is_recorded=False)
            self.cycle.history.add_step(record)
        return record

    def _outputs(self, text: str) -> list[Any]:
        recorded = json.loads(text)
        if recorded != len(self.branches):
            raise ValueError(f"{recorded} branches are recorded, and the code declares {len(self.branches)}.")
        pairs = zip(self.branches, self.inner(), strict=True)
        return [branch.workflow.output.decode(record.output or "null") for branch, record in pairs]


def check_branches(branches: Sequence[object], on_failure: object) -> None:
    """Raise LimitError for more than 100 branches, StepConfigError for what is not a branch."""
    if len(branches) > MAX_BRANCHES:
        advice = "Run them in several calls, or map over them in a workflow of their own."
        raise LimitError("number of branches", len(branches), MAX_BRANCHES, advice=advice)
    what = "argument of step.parallel"
    for one in branches:
        if not isinstance(one, Branch):
            raise StepConfigError(
                "branches", one, "Each must be made by branch(workflow, params).", what=what
            )
    if on_failure not in ("leave", "terminate"):
        raise StepConfigError("on_failure", on_failure, 'It must be "leave" or "terminate".', what=what)


def params_of_branches(cycle: CycleState, record: StepRecord, branches: Sequence[Branch]) -> list[str | None]:
    """Return the checked params of all branches, before any is started. They are written together.

    A retry has begun this generation with the branches that were complete: the others are new.
    """
    recorded = [_recorded_branch(cycle, record, index) for index in range(len(branches))]
    found = [
        params_of(cycle, of, one.workflow, one.params) for of, one in zip(recorded, branches, strict=True)
    ]
    size = sum(len(one or "") for one in found)
    if size > MAX_PARAMS:
        advice = "Split the branches over several calls."
        raise LimitError("size of all params", size, MAX_PARAMS, unit="characters", advice=advice)
    return found


def _recorded_branch(cycle: CycleState, record: StepRecord, index: int) -> StepRecord:
    identity = StepIdentity(record.seq, StepKind.CHILD, record.name, index + 1)
    if record.is_final or not record.is_recorded:
        return record
    return cycle.history.steps.get(identity) or StepRecord(0, *identity, is_recorded=False)
