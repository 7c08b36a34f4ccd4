"""Durable execution for Django; knows nothing of HTTP.

Public names are resolved when they are first used, so that a `workflows.py`, a settings file or a pure
module of the engine can be imported before Django's apps are ready.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.declare.children import Handle as Handle
    from engine.declare.children import InstanceResult as InstanceResult
    from engine.declare.children import branch as branch
    from engine.declare.context import RollbackContext as RollbackContext
    from engine.declare.context import StepContext as StepContext
    from engine.declare.defined_step import DefinedStep as DefinedStep
    from engine.declare.defined_step import define_step as define_step
    from engine.declare.messages import Answer as Answer
    from engine.declare.messages import Event as Event
    from engine.declare.messages import ReceivedEvent as ReceivedEvent
    from engine.declare.registry import workflows as workflows
    from engine.declare.schedules import Schedule as Schedule
    from engine.declare.step_types import RollbackOptionsDict as RollbackOptionsDict
    from engine.declare.step_types import StepOptionsDict as StepOptionsDict
    from engine.decorators import workflow as workflow
    from engine.replay.step.workflow_step import WorkflowStep as WorkflowStep
    from engine.values.errors import AtomicStepError as AtomicStepError
    from engine.values.errors import BetweenStepsError as BetweenStepsError
    from engine.values.errors import BulkJobExistsError as BulkJobExistsError
    from engine.values.errors import BulkJobNotFoundError as BulkJobNotFoundError
    from engine.values.errors import ChildIdTakenError as ChildIdTakenError
    from engine.values.errors import ChildWorkflowError as ChildWorkflowError
    from engine.values.errors import CodeChangedError as CodeChangedError
    from engine.values.errors import DeclarationError as DeclarationError
    from engine.values.errors import DedupConflictError as DedupConflictError
    from engine.values.errors import DelayFunctionError as DelayFunctionError
    from engine.values.errors import EventTimeoutError as EventTimeoutError
    from engine.values.errors import FailureNotFoundError as FailureNotFoundError
    from engine.values.errors import InstanceExistsError as InstanceExistsError
    from engine.values.errors import InstanceFinishedError as InstanceFinishedError
    from engine.values.errors import InstanceNeededError as InstanceNeededError
    from engine.values.errors import InstanceNotCompleteError as InstanceNotCompleteError
    from engine.values.errors import InstanceNotFinishedError as InstanceNotFinishedError
    from engine.values.errors import InstanceNotFoundError as InstanceNotFoundError
    from engine.values.errors import InstancePausedError as InstancePausedError
    from engine.values.errors import InstanceTimeoutError as InstanceTimeoutError
    from engine.values.errors import InvalidNameError as InvalidNameError
    from engine.values.errors import InvalidParamsError as InvalidParamsError
    from engine.values.errors import InvalidQueryError as InvalidQueryError
    from engine.values.errors import InvalidValueError as InvalidValueError
    from engine.values.errors import KeysSpentError as KeysSpentError
    from engine.values.errors import LimitError as LimitError
    from engine.values.errors import NonDeterminismError as NonDeterminismError
    from engine.values.errors import NonRetryableError as NonRetryableError
    from engine.values.errors import NotAwaitedError as NotAwaitedError
    from engine.values.errors import NothingToRetryError as NothingToRetryError
    from engine.values.errors import NothingToWakeError as NothingToWakeError
    from engine.values.errors import OpenTransactionError as OpenTransactionError
    from engine.values.errors import ParkingError as ParkingError
    from engine.values.errors import RepriseError as RepriseError
    from engine.values.errors import RequestAnsweredError as RequestAnsweredError
    from engine.values.errors import RequestClosedError as RequestClosedError
    from engine.values.errors import RequestForbiddenError as RequestForbiddenError
    from engine.values.errors import RequestNotFoundError as RequestNotFoundError
    from engine.values.errors import RequestTimeoutError as RequestTimeoutError
    from engine.values.errors import RestartError as RestartError
    from engine.values.errors import RollbackNotFailedError as RollbackNotFailedError
    from engine.values.errors import RollbackNotFoundError as RollbackNotFoundError
    from engine.values.errors import ScheduleNotDeclaredError as ScheduleNotDeclaredError
    from engine.values.errors import ScheduleNotFoundError as ScheduleNotFoundError
    from engine.values.errors import SecretKeyError as SecretKeyError
    from engine.values.errors import StepArgumentsError as StepArgumentsError
    from engine.values.errors import StepConfigError as StepConfigError
    from engine.values.errors import StepError as StepError
    from engine.values.errors import StepExhaustedError as StepExhaustedError
    from engine.values.errors import StepNotExhaustedError as StepNotExhaustedError
    from engine.values.errors import StepNotFailedError as StepNotFailedError
    from engine.values.errors import StepNotFoundError as StepNotFoundError
    from engine.values.errors import StepNotSkippableError as StepNotSkippableError
    from engine.values.errors import StepTimeoutError as StepTimeoutError
    from engine.values.errors import UnknownWorkflowError as UnknownWorkflowError
    from engine.values.errors import WorkerLostError as WorkerLostError
    from engine.values.errors import WorkerNotFoundError as WorkerNotFoundError
    from engine.values.errors import WorkflowTimeoutError as WorkflowTimeoutError

_ERRORS = (
    "AtomicStepError",
    "BetweenStepsError",
    "BulkJobExistsError",
    "BulkJobNotFoundError",
    "ChildIdTakenError",
    "ChildWorkflowError",
    "CodeChangedError",
    "DeclarationError",
    "DedupConflictError",
    "DelayFunctionError",
    "EventTimeoutError",
    "FailureNotFoundError",
    "InstanceExistsError",
    "InstanceFinishedError",
    "InstanceNeededError",
    "InstanceNotCompleteError",
    "InstanceNotFinishedError",
    "InstanceNotFoundError",
    "InstancePausedError",
    "InstanceTimeoutError",
    "InvalidNameError",
    "InvalidParamsError",
    "InvalidQueryError",
    "InvalidValueError",
    "KeysSpentError",
    "LimitError",
    "NonDeterminismError",
    "NonRetryableError",
    "NotAwaitedError",
    "NothingToRetryError",
    "NothingToWakeError",
    "OpenTransactionError",
    "ParkingError",
    "RepriseError",
    "RequestAnsweredError",
    "RequestClosedError",
    "RequestForbiddenError",
    "RequestNotFoundError",
    "RequestTimeoutError",
    "RestartError",
    "RollbackNotFailedError",
    "RollbackNotFoundError",
    "ScheduleNotDeclaredError",
    "ScheduleNotFoundError",
    "SecretKeyError",
    "StepArgumentsError",
    "StepConfigError",
    "StepError",
    "StepNotFailedError",
    "StepNotFoundError",
    "StepExhaustedError",
    "StepNotExhaustedError",
    "StepNotSkippableError",
    "StepTimeoutError",
    "UnknownWorkflowError",
    "WorkerLostError",
    "WorkerNotFoundError",
    "WorkflowTimeoutError",
)
_HOMES = {
    **dict.fromkeys(_ERRORS, "engine.values.errors"),
    **dict.fromkeys(("Handle", "InstanceResult", "branch"), "engine.declare.children"),
    "Schedule": "engine.declare.schedules",
    **dict.fromkeys(("DefinedStep", "define_step"), "engine.declare.defined_step"),
    **dict.fromkeys(("Answer", "Event", "ReceivedEvent"), "engine.declare.messages"),
    "workflow": "engine.decorators",
    "workflows": "engine.declare.registry",
    **dict.fromkeys(("RollbackContext", "StepContext"), "engine.declare.context"),
    **dict.fromkeys(("RollbackOptionsDict", "StepOptionsDict"), "engine.declare.step_types"),
    "WorkflowStep": "engine.replay.step.workflow_step",
}

__all__ = sorted(_HOMES)


def _refuse_windows() -> None:
    # Workers fork, and hold locks of files; without this, the first thing that is missing would be named.
    if sys.platform == "win32":
        raise ImportError("Reprise does not run on Windows. Use it in WSL 2 there, which is Linux.")


_refuse_windows()


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return __all__
