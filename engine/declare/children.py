"""Workflows as parts of others: what a handler says about them, and what it gets to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.declare.registry import Workflow, workflows
from engine.values.errors import ErrorRecord, StepConfigError
from engine.values.identity import stable_hash
from engine.values.states import InstanceStatus


@dataclass(frozen=True, slots=True)
class Handle:
    """Which instance it is: what `step.spawn` returns and `step.wait_for_instance` takes."""

    workflow: str
    id: str

    def __hash__(self) -> int:
        return stable_hash(self.workflow, self.id)


@dataclass(frozen=True, slots=True)
class InstanceResult:
    """How an instance has ended. `output` is there only if it is complete, `error` if it says why it is not."""

    workflow: str
    id: str
    status: str
    output: Any = None
    error: ErrorRecord | None = None

    def __hash__(self) -> int:
        return stable_hash(self.workflow, self.id)

    @property
    def is_complete(self) -> bool:
        return self.status == InstanceStatus.COMPLETE


@dataclass(frozen=True, slots=True)
class Branch:
    """A child of `step.parallel`; see `branch`."""

    workflow: Workflow[Any, Any]
    params: Any = None
    compensate_with: Workflow[Any, Any] | None = None


def branch(
    workflow: Workflow[Any, Any] | str,
    params: Any = None,
    *,
    compensate_with: Workflow[Any, Any] | str | None = None,
) -> Branch:
    """Describe a child for `step.parallel`.

    `compensate_with` is started if another branch fails after this one is complete, with the params
    `{"branch": workflow, "index": place, "output": of this one, "error": of the one that failed}`.

    Raises UnknownWorkflowError for a name that no workflow has.
    """
    undo = None if compensate_with is None else known(compensate_with)
    return Branch(known(workflow), params, undo)


def known(workflow: object) -> Workflow[Any, Any]:
    """Return the workflow that is given by itself or by its name. Raises UnknownWorkflowError."""
    if isinstance(workflow, Workflow):
        return workflow
    if isinstance(workflow, str):
        return workflows[workflow]
    rule = "It must be what @workflow made, or the name of a workflow."
    raise StepConfigError("workflow", workflow, rule, what="argument of a call that starts a child")
