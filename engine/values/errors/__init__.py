"""The errors of the engine: one class a situation, its data as attributes, a message that says what to do."""

from engine.values.error_record import ErrorRecord
from engine.values.errors.base import RepriseError
from engine.values.errors.calls import (
    BetweenStepsError,
    NotAwaitedError,
    ParkingError,
    StepArgumentsError,
    StepConfigError,
)
from engine.values.errors.control_flow import AbortWorkflow, CompleteWorkflow, ControlFlow, FailWorkflow
from engine.values.errors.failures import FailureNotFoundError
from engine.values.errors.instances import (
    DedupConflictError,
    GenerationNotFoundError,
    InstanceExistsError,
    InstanceFinishedError,
    InstanceNeededError,
    InstanceNotCompleteError,
    InstanceNotFinishedError,
    InstanceNotFoundError,
    InstancePausedError,
    KeysSpentError,
    NothingToRetryError,
    NothingToWakeError,
    RestartError,
    RollbackNotFailedError,
    StepNotFailedError,
    StepNotFoundError,
)
from engine.values.errors.steps import (
    AtomicStepError,
    DelayFunctionError,
    NonRetryableError,
    OpenTransactionError,
    RollbackNotFoundError,
    StepError,
    StepTimeoutError,
    WorkerLostError,
)
from engine.values.errors.values import (
    InvalidNameError,
    InvalidParamsError,
    InvalidQueryError,
    InvalidValueError,
    LimitError,
    ParamError,
)
from engine.values.errors.waits import (
    ChildIdTakenError,
    ChildWorkflowError,
    EventTimeoutError,
    InstanceTimeoutError,
    RequestAnsweredError,
    RequestClosedError,
    RequestForbiddenError,
    RequestNotFoundError,
    RequestTimeoutError,
)
from engine.values.errors.workflows import (
    CodeChangedError,
    DeclarationError,
    NonDeterminismError,
    ScheduleNotDeclaredError,
    ScheduleNotFoundError,
    SecretKeyError,
    UnknownWorkflowError,
    WorkflowTimeoutError,
)

__all__ = [
    "AbortWorkflow",
    "AtomicStepError",
    "BetweenStepsError",
    "ChildIdTakenError",
    "ChildWorkflowError",
    "CodeChangedError",
    "CompleteWorkflow",
    "ControlFlow",
    "DeclarationError",
    "DedupConflictError",
    "DelayFunctionError",
    "ErrorRecord",
    "EventTimeoutError",
    "FailWorkflow",
    "FailureNotFoundError",
    "GenerationNotFoundError",
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
    "ParamError",
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
    "StepTimeoutError",
    "UnknownWorkflowError",
    "WorkerLostError",
    "WorkflowTimeoutError",
]

# Users import them from here, so tracebacks, pickles and the records of delay functions name this module, whichever
# file declares a class.
for _name in __all__:
    if globals()[_name].__module__.startswith(f"{__name__}."):
        globals()[_name].__module__ = __name__
