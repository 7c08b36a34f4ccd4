"""The calls of `step` that concern other instances."""

from __future__ import annotations

from collections.abc import Coroutine
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar, overload

from engine.declare.batches import Fields
from engine.declare.children import Branch, Handle, InstanceResult, known
from engine.declare.registry import Workflow
from engine.replay.calls.call import INERT
from engine.replay.calls.unawaited import check_awaited
from engine.replay.children import instances, parallel
from engine.replay.children.child import ChildOperation, SpawnOperation, params_of
from engine.replay.step.entrance import Entrance
from engine.values.durations import parse_duration
from engine.values.identity import check_step_name
from engine.values.states import StepKind

if TYPE_CHECKING:
    from engine.models import Instance

P = TypeVar("P")
R = TypeVar("R")
Duration = timedelta | int | float | str
MICROSECOND = timedelta(microseconds=1)


class ChildCalls:
    """The operations of a WorkflowStep on other instances."""

    _entrance: Entrance

    @overload
    def run_workflow(
        self, name: str, workflow: Workflow[None, R], params: None = None
    ) -> Coroutine[Any, Any, R]: ...
    @overload
    def run_workflow(
        self, name: str, workflow: Workflow[P, R], params: P | Fields
    ) -> Coroutine[Any, Any, R]: ...
    @overload
    def run_workflow(self, name: str, workflow: str, params: Any = None) -> Coroutine[Any, Any, Any]: ...
    def run_workflow(self, name: str, workflow: Any, params: Any = None) -> Any:
        """Start a child and wait for its output. `workflow` is a workflow or its name. The child ends with this
        instance, or when this call is cancelled.

        Raises ChildWorkflowError if it does not complete; and at once, with nothing started, UnknownWorkflowError,
        InvalidParamsError, or LimitError for a child at a depth over 20.
        """
        cycle = self._entrance.enter("run_workflow", name)
        if cycle is None:
            return INERT
        record = cycle.identities.record_of(StepKind.CHILD, check_step_name(name))
        child = known(workflow)
        given = params_of(cycle, record, child, params)
        return cycle.enter(ChildOperation(cycle, record, child, given))

    @overload
    def spawn(
        self, name: str, workflow: Workflow[None, R], params: None = None
    ) -> Coroutine[Any, Any, Handle[R]]: ...
    @overload
    def spawn(
        self, name: str, workflow: Workflow[P, R], params: P | Fields
    ) -> Coroutine[Any, Any, Handle[R]]: ...
    @overload
    def spawn(self, name: str, workflow: str, params: Any = None) -> Coroutine[Any, Any, Handle]: ...
    def spawn(self, name: str, workflow: Any, params: Any = None) -> Any:
        """Start a child that is independent of this instance; return its Handle. `workflow` is a workflow or its
        name.

        At once, with nothing started, raises UnknownWorkflowError, InvalidParamsError, or LimitError for a child at
        a depth over 20.
        """
        cycle = self._entrance.enter("spawn", name)
        if cycle is None:
            return INERT
        record = cycle.identities.record_of(StepKind.CHILD, check_step_name(name))
        child = known(workflow)
        given = params_of(cycle, record, child, params)
        return cycle.enter(SpawnOperation(cycle, record, child, given))

    @overload
    def wait_for_instance(
        self, name: str, handle: Handle[R] | Instance[R], *, timeout: Duration | None = None
    ) -> Coroutine[Any, Any, InstanceResult[R | None]]: ...
    @overload
    def wait_for_instance(
        self, name: str, *, workflow: Workflow[Any, R], id: str, timeout: Duration | None = None
    ) -> Coroutine[Any, Any, InstanceResult[R | None]]: ...
    @overload
    def wait_for_instance(
        self, name: str, *, workflow: str, id: str, timeout: Duration | None = None
    ) -> Coroutine[Any, Any, InstanceResult]: ...
    def wait_for_instance(
        self,
        name: str,
        handle: Handle | Instance | None = None,
        *,
        workflow: Workflow[Any, Any] | str | None = None,
        id: str | None = None,
        timeout: Duration | None = None,
    ) -> Coroutine[Any, Any, InstanceResult]:
        """Wait until an instance has ended, given as a handle, as an instance, or as `workflow=` and `id=`; return
        its InstanceResult, whatever the final status.

        Raises InstanceNotFoundError if there is none, InstanceTimeoutError after `timeout`, StepConfigError for
        this instance itself, and InvalidNameError for an invalid name or id.
        """
        check_awaited("it was passed to another step", handle)
        cycle = self._entrance.enter("wait_for_instance", name)
        if cycle is None:
            return INERT
        check_step_name(name)
        limit = None if timeout is None else parse_duration(timeout, what="timeout") // MICROSECOND
        other = instances.meant(cycle, handle, workflow, id)
        record = cycle.identities.record_of(StepKind.CHILD, name)
        operation = instances.InstanceOperation(cycle, record, *other, limit)
        return cycle.enter(operation)

    @overload
    def parallel(
        self, name: str, *branches: Branch[R], on_failure: parallel.OnFailure = "leave"
    ) -> Coroutine[Any, Any, list[R]]: ...
    @overload
    def parallel(
        self, name: str, *branches: Branch, on_failure: parallel.OnFailure = "leave"
    ) -> Coroutine[Any, Any, list[Any]]: ...
    def parallel(
        self, name: str, *branches: Branch, on_failure: parallel.OnFailure = "leave"
    ) -> Coroutine[Any, Any, list[Any]]:
        """Run children side by side, at most 100; return their outputs in the order of the branches.

        The first that fails raises ChildWorkflowError at once. The others continue, or are terminated with
        `on_failure="terminate"`. Branches that are complete by then are compensated as they declare.
        Raises what `run_workflow` raises at once, for any branch, before any is started.
        """
        cycle = self._entrance.enter("parallel", name)
        if cycle is None:
            return INERT
        check_step_name(name)
        parallel.check_branches(branches, on_failure)
        record = cycle.identities.record_of(StepKind.PARALLEL, name)
        params = parallel.params_of_branches(cycle, record, branches)
        return cycle.enter(parallel.ParallelOperation(cycle, record, branches, params, on_failure))
