"""Errors say what to do, and carry their data."""

import contextlib
from datetime import timedelta
from importlib import import_module
from pkgutil import iter_modules

import pytest

from engine.values import errors
from engine.values.errors import (
    AbortWorkflow,
    CompleteWorkflow,
    ControlFlow,
    DedupConflictError,
    ErrorRecord,
    EventTimeoutError,
    FailWorkflow,
    InstanceExistsError,
    InstanceFinishedError,
    InstanceNeededError,
    InstanceNotCompleteError,
    InstanceNotFinishedError,
    InstanceNotFoundError,
    InvalidNameError,
    InvalidParamsError,
    InvalidValueError,
    LimitError,
    NonDeterminismError,
    NonRetryableError,
    ParkingError,
    RepriseError,
    RestartError,
    StepConfigError,
    StepError,
    StepNotFoundError,
    StepTimeoutError,
    UnknownWorkflowError,
    WorkerLostError,
    WorkflowTimeoutError,
)

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            StepError("charge", "Declined", "no funds", 3, {}),
            'Step "charge" failed after 3 attempts: Declined: no funds',
        ),
        (StepError("charge", "Declined", "", 1), 'Step "charge" failed after 1 attempt: Declined'),
        (StepTimeoutError(timedelta(milliseconds=200)), "Execution timed out after 200 ms."),
        (
            EventTimeoutError("approval", "approved", MINUTE),
            'Step "approval" got no event of type "approved" within 1 m 00 s.',
        ),
        (
            EventTimeoutError("approval", ["yes", "no"], MINUTE),
            'Step "approval" got no event of type "yes" or "no" within 1 m 00 s.',
        ),
        (
            WorkflowTimeoutError("timeout", MINUTE),
            "The instance, including all its waits, took longer than the workflow's timeout of 1 m 00 s.",
        ),
        (
            WorkflowTimeoutError("handler_timeout", MINUTE),
            "The handler's code between steps ran longer than its handler_timeout of 1 m 00 s.",
        ),
        (
            WorkerLostError("crop", 3),
            (
                'Step "crop" ran alone in its worker 3 times, and each time the worker died. '
                "Check its body for crashes and for running out of memory, then restart the instance."
            ),
        ),
        (
            StepConfigError("timeout", 0, "It must be longer than 0.", what='Step "a"'),
            'Step "a": "timeout" is 0. It must be longer than 0.',
        ),
        (
            ParkingError("sleep", "nap", "parent"),
            (
                'step.sleep("nap") was called inside the body of step "parent", where the instance cannot be parked. '
                "Call it from the workflow's handler, before or after that step."
            ),
        ),
        (
            ParkingError("fail", "", "parent", rule="no."),
            'step.fail was called inside the body of step "parent", no.',
        ),
        (
            NonDeterminismError("The output has another type.", recorded="int", current="str"),
            (
                "The output has another type. Recorded: int. Now: str. Deploy code that fits the record and resume, "
                "or restart the instance."
            ),
        ),
        (
            UnknownWorkflowError("rolling-reease", ["rolling-release", "backup"]),
            (
                'There is no workflow "rolling-reease". Did you mean "rolling-release"? '
                "Workflows are declared in the workflows.py of an installed app."
            ),
        ),
        (
            UnknownWorkflowError("x"),
            (
                'There is no workflow "x". Known workflows: none. '
                "Workflows are declared in the workflows.py of an installed app."
            ),
        ),
        (
            UnknownWorkflowError("nope", ["rolling-release", "backup"]),
            (
                'There is no workflow "nope". Known workflows: backup, rolling-release. '
                "Workflows are declared in the workflows.py of an installed app."
            ),
        ),
        (
            InstanceExistsError("w", "i"),
            'Workflow "w" already has an instance "i". Choose another id, or use get_or_start().',
        ),
        (InstanceNotFoundError("w", "i"), 'Workflow "w" has no instance "i". Ids are unique per workflow.'),
        (
            InstanceFinishedError("w", "i", "complete", "sending an event"),
            (
                'Instance "i" of workflow "w" is complete, so sending an event is no longer possible. '
                "Only a restart leaves a final status."
            ),
        ),
        (
            StepNotFoundError("w", "i", ("do", "shipp", 1), [("do", "ship", 1), ("do", "ship", 2)]),
            (
                'Instance "i" of workflow "w" has no step do "shipp" to restart from. Did you mean do "ship"? '
                'Its steps: do "ship", do "ship" #2.'
            ),
        ),
        (
            StepNotFoundError("w", "i", ("do", "x", 3), []),
            'Instance "i" of workflow "w" has no step do "x" #3 to restart from. Its steps: none.',
        ),
        (
            StepNotFoundError("w", "i", ("do", "x", 1), [("do", f"step-{n}", 1) for n in range(21)]),
            (
                'Instance "i" of workflow "w" has no step do "x" to restart from. Its steps: '
                + ", ".join(f'do "step-{n}"' for n in range(20))
                + ", and 1 more."
            ),
        ),
        (
            RestartError("w", "i", 'do "ship"', 'do "charge"', 'do "reserve"'),
            (
                'Instance "i" of workflow "w" cannot be restarted from step do "ship": step do "charge", which is '
                'before it, has been rolled back. Restart it from step do "reserve" or an earlier one, or from the '
                "start."
            ),
        ),
        (
            InstanceNotCompleteError("w", "i", "running"),
            (
                'Instance "i" of workflow "w" has no result: it is running. Read it again when it has finished: '
                "instance.refresh().result()."
            ),
        ),
        (
            InstanceNotCompleteError("w", "i", "errored", ErrorRecord("Declined", "no funds")),
            'Instance "i" of workflow "w" has no result: it is errored: Declined: no funds.',
        ),
        (
            InstanceNotFinishedError("w", "i", "running"),
            (
                'Instance "i" of workflow "w" is running. Only a finished instance can be deleted; terminate it first.'
            ),
        ),
        (
            InstanceNeededError("w", "i", "v", "p"),
            (
                'Instance "i" of workflow "w" cannot be deleted yet: instance "p" of workflow "v" still has to receive '
                "its outcome. Try again once that instance has continued or finished."
            ),
        ),
        (
            DedupConflictError("w", "i", "k"),
            (
                'Instance "i" of workflow "w" already has a different event with dedup key "k". '
                "The first event is kept; send this one with another key."
            ),
        ),
        (
            InvalidNameError("a step's name", "a\nb", "No control characters."),
            r"'a\nb' cannot be a step's name. No control characters.",
        ),
        (
            InvalidValueError("$.a", "cyclic", "It contains itself.", what='output of step "x"'),
            'The output of step "x" cannot be stored. At $.a: It contains itself.',
        ),
        (
            LimitError("number of steps", 10_001, 10_000),
            "The number of steps is 10,001; the limit is 10,000.",
        ),
    ],
)
def test_a_message_is_a_sentence_that_says_what_to_do(error, message):
    assert str(error) == message


def test_every_error_is_a_reprise_error_and_control_flow_is_none():
    public = [getattr(errors, name) for name in errors.__all__]
    raised = {cls for cls in public if isinstance(cls, type) and issubclass(cls, BaseException)}
    flow = {ControlFlow, FailWorkflow, AbortWorkflow, CompleteWorkflow}
    assert {cls for cls in raised if not issubclass(cls, RepriseError)} == flow
    assert not [cls for cls in flow if issubclass(cls, Exception)]


def declared() -> dict[str, type]:
    """Find the classes in the files of the package."""
    modules = [import_module(found.name) for found in iter_modules(errors.__path__, f"{errors.__name__}.")]
    return {
        name: kind
        for module in modules
        for name, kind in vars(module).items()
        if isinstance(kind, type) and kind.__module__.startswith(errors.__name__)
    }


def test_every_error_has_its_name_in_the_module_that_users_import_it_from():
    """Pickles, and what is recorded for delay functions, find a class by that module."""
    kinds = declared()
    assert {*kinds, "ErrorRecord"} == set(errors.__all__)
    assert {name: (kind.__module__, getattr(errors, name)) for name, kind in kinds.items()} == {
        name: ("engine.values.errors", kind) for name, kind in kinds.items()
    }


def test_control_flow_passes_by_except_exception():
    """KC-20."""
    with pytest.raises(FailWorkflow) as failed, contextlib.suppress(Exception):
        raise FailWorkflow("reason")
    assert failed.value.message == "reason"
    assert (AbortWorkflow("r").reason, CompleteWorkflow({"a": 1}).output) == ("r", {"a": 1})


def test_errors_carry_their_data():
    error = StepError("charge", "Declined", "no funds", 3, {"code": 51})
    assert vars(error) == {
        "step": "charge",
        "type": "Declined",
        "message": "no funds",
        "attempts": 3,
        "details": {"code": 51},
    }
    assert vars(EventTimeoutError("s", "t", MINUTE)) == {"step": "s", "type": "t", "timeout": 60.0}


def test_a_non_retryable_error_may_have_a_cause_and_no_message():
    cause = ValueError("x")
    assert NonRetryableError("m", cause=cause).__cause__ is cause
    assert str(NonRetryableError()) == ""


def test_wrong_params_are_listed_each_with_its_path():
    wrong = [
        {"path": f"items/{n}/qty", "message": "Input should be an integer", "code": "int_type"}
        for n in range(12)
    ]
    error = InvalidParamsError(wrong)
    assert error.errors == wrong
    assert str(error).startswith(
        "The params do not match the declared type: items/0/qty: Input should be an integer; "
    )
    assert str(error).endswith("items/9/qty: Input should be an integer; and 2 more")
    whole = InvalidParamsError([{"path": "", "message": "Input should be an object", "code": "model_type"}])
    assert str(whole) == "The params do not match the declared type: as a whole: Input should be an object"
    payload = InvalidParamsError(
        [{"path": "box", "message": "It is missing.", "code": "missing"}], what="payload"
    )
    assert str(payload) == "The payload does not match the declared type: box: It is missing."


class Rude:
    def __repr__(self):
        raise RuntimeError("no")


def test_a_message_survives_any_value():
    assert StepConfigError("delay", Rude(), "r").value == "(a value of type Rude)"
    assert StepConfigError("delay", 10**5000, "r").value == "(a value of type int)"
    assert len(str(InvalidNameError("a step's name", "x" * 10_000, "Too long."))) < 200
