"""An error can be pickled and copied, whatever its `__init__` takes: process pools and test runners do so."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta

import pytest

from engine.values import errors

MINUTE = timedelta(minutes=1)
WRONG: errors.ParamError = {"path": "items/0/qty", "message": "It is missing.", "code": "missing"}
RECORD = errors.ErrorRecord(type="Declined", message="no funds")
ERRORS: list[BaseException] = [
    errors.AbortWorkflow("not needed"),
    errors.AtomicStepError("charge", "It was cut off.", is_rollback=True),
    errors.BetweenStepsError("A query ran", "Move it into a step."),
    errors.ChildIdTakenError("bill", "b-1"),
    errors.ChildWorkflowError("bill", "bill", "b-1", "errored", RECORD, index=2),
    errors.CodeChangedError("order", recorded="aa", current="bb"),
    errors.CompleteWorkflow({"paid": 1}),
    errors.ControlFlow("the end"),
    errors.DeclarationError("workflow order", "timeout", "It must be longer than 0."),
    errors.DedupConflictError("order", "o-1", "paid-7"),
    errors.DelayFunctionError("charge", ZeroDivisionError("division by zero")),
    errors.EventTimeoutError("approval", ["yes", "no"], MINUTE),
    errors.FailWorkflow("out of stock"),
    errors.BulkJobExistsError("b-1"),
    errors.BulkJobNotFoundError("b-1"),
    errors.FailureNotFoundError("0123456789abcdef"),
    errors.GenerationNotFoundError("order", "o-1", 3, 2),
    errors.InstanceExistsError("order", "o-1"),
    errors.InstanceFinishedError("order", "o-1", "complete", "sending an event"),
    errors.InstanceNeededError("order", "o-1", "shop", "s-1"),
    errors.InstanceNotCompleteError("order", "o-1", "errored", RECORD),
    errors.InstanceNotFinishedError("order", "o-1", "running"),
    errors.InstanceNotFoundError("order", "o-1"),
    errors.InstanceTimeoutError("bill", "bill", "b-1", MINUTE),
    errors.InvalidNameError("a step's name", "a\nb", "No control characters."),
    errors.InvalidParamsError([WRONG], what="payload"),
    errors.InvalidQueryError([("staus:open", 'There is no field "staus".')]),
    errors.InvalidValueError("$.a", "cyclic", "It contains itself.", what="output"),
    errors.KeysSpentError("order", "o-1", 'do "charge"', "complete"),
    errors.LimitError("number of steps", 10_001, 10_000, advice="Split the workflow."),
    errors.NonDeterminismError("The output has another type.", recorded="int", current="str"),
    errors.NonRetryableError("The card is blocked.", cause=ValueError("blocked")),
    errors.NotAwaitedError("charge", "its attribute cents", "step.do"),
    errors.OpenTransactionError("charge", ["default"]),
    errors.ParkingError("sleep", "nap", "charge"),
    errors.RepriseError("a message"),
    errors.RequestAnsweredError("decide", "ada", datetime(2026, 11, 21, tzinfo=UTC), "seen"),
    errors.RequestClosedError("decide", "it has expired"),
    errors.RequestForbiddenError("decide", "ben", ["ada"]),
    errors.RequestNotFoundError("order", "o-1", "decide", ["approve"]),
    errors.RequestTimeoutError("decide", "decide", MINUTE),
    errors.RestartError("order", "o-1", 'do "ship"', 'do "charge"', 'do "reserve"'),
    errors.InstancePausedError("order", "o-1", "paused", "retry"),
    errors.NothingToRetryError("order", "o-1", "waiting", "it is sleeping"),
    errors.NothingToWakeError("order", "o-1", "waiting", 'it is sleeping at "nap"', '"nip"'),
    errors.RollbackNotFailedError("order", "o-1", "complete", ""),
    errors.RollbackNotFoundError("charge"),
    errors.ScheduleNotDeclaredError("order", "nightly"),
    errors.ScheduleNotFoundError("order", "nightly"),
    errors.SecretKeyError("k2", ["k1"]),
    errors.StepNotFailedError("order", "o-1", "complete"),
    errors.StepArgumentsError("charge", "charge()", 2, "too many arguments"),
    errors.StepConfigError("timeout", 0, "It must be longer than 0."),
    errors.StepError("charge", "Declined", "no funds", 3, {"code": 51}),
    errors.StepNotFoundError("order", "o-1", ("do", "shipp", 1), [("do", "ship", 1)]),
    errors.StepExhaustedError("order", "o-1", [("charge", 5), ("ship", 1)]),
    errors.StepNotExhaustedError("order", "o-1", "paused", "retry", ("ship", 2), ["charge"]),
    errors.StepNotSkippableError("order", "o-1", "ship", 2, "an attempt runs"),
    errors.StepTimeoutError(MINUTE),
    errors.UnknownWorkflowError("ordr", ["order"]),
    errors.WorkerLostError("crop", 3),
    errors.WorkerNotFoundError("web:1", ["web:2"]),
    errors.WorkflowTimeoutError("timeout", MINUTE),
]


class CardDeclinedError(errors.NonRetryableError):
    """As a user writes it: its `__init__` takes what the message is made of."""

    def __init__(self, card: str, *, bank: str) -> None:
        self.card, self.bank = card, bank
        super().__init__(f"{bank} declined {card}.")


@pytest.mark.parametrize(
    "error", [*ERRORS, CardDeclinedError("4711", bank="ACME")], ids=lambda e: type(e).__name__
)
def test_an_error_is_the_same_after_pickling_and_copying(error: BaseException) -> None:
    pickled = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for twin in [copy.copy(error), *pickled]:
        assert type(twin) is type(error)
        assert (str(twin), twin.args, vars(twin)) == (str(error), error.args, vars(error))


def test_no_error_is_left_out() -> None:
    public = [getattr(errors, name) for name in errors.__all__]
    assert {type(error) for error in ERRORS} == {kind for kind in public if issubclass(kind, BaseException)}
