"""Durable execution for Django; knows nothing of HTTP.

The public names are found when they are first asked for, so that a `workflows.py`, a settings file or a pure
module of the engine can be imported before Django's apps are ready.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.children import Handle as Handle
    from engine.children import InstanceResult as InstanceResult
    from engine.children import branch as branch
    from engine.declared_schedules import Schedule as Schedule
    from engine.decorators import workflow as workflow
    from engine.defined_step import DefinedStep as DefinedStep
    from engine.defined_step import define_step as define_step
    from engine.errors import AtomicStepError as AtomicStepError
    from engine.errors import BetweenStepsError as BetweenStepsError
    from engine.errors import ChildIdTakenError as ChildIdTakenError
    from engine.errors import ChildWorkflowError as ChildWorkflowError
    from engine.errors import CodeChangedError as CodeChangedError
    from engine.errors import DeclarationError as DeclarationError
    from engine.errors import DedupConflictError as DedupConflictError
    from engine.errors import DelayFunctionError as DelayFunctionError
    from engine.errors import EventTimeoutError as EventTimeoutError
    from engine.errors import InstanceExistsError as InstanceExistsError
    from engine.errors import InstanceFinishedError as InstanceFinishedError
    from engine.errors import InstanceNeededError as InstanceNeededError
    from engine.errors import InstanceNotFinishedError as InstanceNotFinishedError
    from engine.errors import InstanceNotFoundError as InstanceNotFoundError
    from engine.errors import InstanceTimeoutError as InstanceTimeoutError
    from engine.errors import InvalidNameError as InvalidNameError
    from engine.errors import InvalidParamsError as InvalidParamsError
    from engine.errors import InvalidValueError as InvalidValueError
    from engine.errors import LimitError as LimitError
    from engine.errors import NonDeterminismError as NonDeterminismError
    from engine.errors import NonRetryableError as NonRetryableError
    from engine.errors import NotAwaitedError as NotAwaitedError
    from engine.errors import OpenTransactionError as OpenTransactionError
    from engine.errors import ParkingError as ParkingError
    from engine.errors import RepriseError as RepriseError
    from engine.errors import RequestAnsweredError as RequestAnsweredError
    from engine.errors import RequestClosedError as RequestClosedError
    from engine.errors import RequestForbiddenError as RequestForbiddenError
    from engine.errors import RequestNotFoundError as RequestNotFoundError
    from engine.errors import RequestTimeoutError as RequestTimeoutError
    from engine.errors import RestartError as RestartError
    from engine.errors import RollbackNotFailedError as RollbackNotFailedError
    from engine.errors import RollbackNotFoundError as RollbackNotFoundError
    from engine.errors import ScheduleNotDeclaredError as ScheduleNotDeclaredError
    from engine.errors import ScheduleNotFoundError as ScheduleNotFoundError
    from engine.errors import SecretKeyError as SecretKeyError
    from engine.errors import StepArgumentsError as StepArgumentsError
    from engine.errors import StepConfigError as StepConfigError
    from engine.errors import StepError as StepError
    from engine.errors import StepNotFoundError as StepNotFoundError
    from engine.errors import StepTimeoutError as StepTimeoutError
    from engine.errors import UnknownWorkflowError as UnknownWorkflowError
    from engine.errors import WorkerLostError as WorkerLostError
    from engine.errors import WorkflowTimeoutError as WorkflowTimeoutError
    from engine.messages import Answer as Answer
    from engine.messages import Event as Event
    from engine.messages import ReceivedEvent as ReceivedEvent
    from engine.registry import workflows as workflows
    from engine.replay.context import RollbackContext as RollbackContext
    from engine.replay.context import StepContext as StepContext
    from engine.replay.step import WorkflowStep as WorkflowStep

_ERRORS = (
    "AtomicStepError",
    "BetweenStepsError",
    "ChildIdTakenError",
    "ChildWorkflowError",
    "CodeChangedError",
    "DeclarationError",
    "DedupConflictError",
    "DelayFunctionError",
    "EventTimeoutError",
    "InstanceExistsError",
    "InstanceFinishedError",
    "InstanceNeededError",
    "InstanceNotFinishedError",
    "InstanceNotFoundError",
    "InstanceTimeoutError",
    "InvalidNameError",
    "InvalidParamsError",
    "InvalidValueError",
    "LimitError",
    "NonDeterminismError",
    "NonRetryableError",
    "NotAwaitedError",
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
    "StepNotFoundError",
    "StepTimeoutError",
    "UnknownWorkflowError",
    "WorkerLostError",
    "WorkflowTimeoutError",
)
_HOMES = {
    **dict.fromkeys(_ERRORS, "engine.errors"),
    **dict.fromkeys(("Handle", "InstanceResult", "branch"), "engine.children"),
    "Schedule": "engine.declared_schedules",
    **dict.fromkeys(("DefinedStep", "define_step"), "engine.defined_step"),
    **dict.fromkeys(("Answer", "Event", "ReceivedEvent"), "engine.messages"),
    "workflow": "engine.decorators",
    "workflows": "engine.registry",
    **dict.fromkeys(("RollbackContext", "StepContext"), "engine.replay.context"),
    "WorkflowStep": "engine.replay.step",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return __all__
