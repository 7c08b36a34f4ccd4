"""Workflows that other workflows start: how a handler declares them, and their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, cast, overload

from typing_extensions import TypeVar  # with a default: annotations may leave the type out

from engine.declare.batches import Fields
from engine.declare.registry import Workflow, workflows
from engine.values.errors import ErrorRecord, StepConfigError
from engine.values.identity import stable_hash
from engine.values.states import InstanceStatus

P = TypeVar("P")
R = TypeVar("R")
Output = TypeVar("Output", default=Any)


@dataclass(frozen=True)  # without slots: Python 3.11 could not call Handle[str](…)
class Handle(Generic[Output]):
    """A reference to an instance, returned by `step.spawn` and taken by `step.wait_for_instance`."""

    workflow: str
    """The name of its workflow."""
    id: str
    """Its id."""

    def __hash__(self) -> int:
        return stable_hash(self.workflow, self.id)


@dataclass(frozen=True)  # without slots: Python 3.11 could not call InstanceResult[str](…)
class InstanceResult(Generic[Output]):
    """How an instance ended: the result of `step.wait_for_instance`."""

    workflow: str
    """The name of its workflow."""
    id: str
    """Its id."""
    status: str
    """Its final status: complete, errored or terminated."""
    output: Output = cast("Output", None)  # noqa: RUF009 - a constant
    """What it returned, or None if it is not complete."""
    error: ErrorRecord | None = None
    """Why it failed: `.type`, `.message`, `.details`. None if it is complete or was terminated without an error."""

    def __hash__(self) -> int:
        return stable_hash(self.workflow, self.id)

    @property
    def is_complete(self) -> bool:
        """Whether its status is complete."""
        return self.status == InstanceStatus.COMPLETE


@dataclass(frozen=True, slots=True)
class Branch(Generic[Output]):
    """A child of `step.parallel`; see `branch`."""

    workflow: Workflow[Any, Output]
    params: Any = None
    compensate_with: Workflow[Any, Any] | None = None


@overload
def branch(
    workflow: Workflow[None, R],
    params: None = None,
    *,
    compensate_with: Workflow[Any, Any] | str | None = None,
) -> Branch[R]: ...
@overload
def branch(
    workflow: Workflow[P, R], params: P | Fields, *, compensate_with: Workflow[Any, Any] | str | None = None
) -> Branch[R]: ...
@overload
def branch(
    workflow: str, params: Any = None, *, compensate_with: Workflow[Any, Any] | str | None = None
) -> Branch: ...
def branch(
    workflow: Workflow[Any, Any] | str,
    params: Any = None,
    *,
    compensate_with: Workflow[Any, Any] | str | None = None,
) -> Branch:
    """Describe a child for `step.parallel`.

    `compensate_with` is started if another branch fails after this one has completed, with the params
    `{"branch": workflow, "index": position, "output": of this branch, "error": of the failed branch}`.

    Raises UnknownWorkflowError if no workflow has that name.
    """
    undo = None if compensate_with is None else known(compensate_with)
    return Branch(known(workflow), params, undo)


def known(workflow: object) -> Workflow[Any, Any]:
    """Return a workflow, given as an object or by name. Raises UnknownWorkflowError."""
    if isinstance(workflow, Workflow):
        return workflow
    if isinstance(workflow, str):
        return workflows[workflow]
    rule = "It must be a workflow declared with @workflow, or the name of one."
    raise StepConfigError("workflow", workflow, rule, what="argument of a call that starts a child")
