"""The errors of the engine: one class a situation, its data as attributes, a message that says what to do."""

import difflib
import zlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from types import FunctionType
from typing import TypedDict

from engine.values.durations import format_duration
from engine.values.error_record import ErrorRecord, cut
from engine.values.json_type import JSON

__all__ = [
    "AbortWorkflow",
    "AtomicStepError",
    "BetweenStepsError",
    "ChildIdTakenError",
    "CodeChangedError",
    "CompleteWorkflow",
    "ControlFlow",
    "DeclarationError",
    "DedupConflictError",
    "DelayFunctionError",
    "ErrorRecord",
    "EventTimeoutError",
    "FailWorkflow",
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
    "StepNotFoundError",
    "StepTimeoutError",
    "UnknownWorkflowError",
    "WorkerLostError",
    "WorkflowTimeoutError",
]


NEAR_AMONG = 500  # names: to compare with thousands takes seconds


class RepriseError(Exception):
    """Every error that the engine raises on purpose is one of these."""

    def __hash__(self) -> int:
        """Hash by the message, which a replay repeats, and not by the address: handlers may put errors into sets."""
        said = self.args[0] if self.args else ""
        return zlib.crc32(said.encode(errors="surrogatepass")) if type(said) is str else super().__hash__()


# Of a step


class StepError(RepriseError):
    """A step failed for good. Raised live and on every replay; caught, the workflow goes on."""

    def __init__(
        self,
        step: str,
        type: str,
        message: str,
        attempts: int = 1,
        details: "dict[str, JSON] | None" = None,
    ) -> None:
        self.step = step
        self.type = type
        self.message = message
        self.attempts = attempts
        self.details: dict[str, JSON] = {} if details is None else details
        times = "1 attempt" if attempts == 1 else f"{attempts:,} attempts"
        super().__init__(f'Step "{step}" failed after {times}: {type}{": " if message else ""}{message}')


class NonRetryableError(RepriseError):
    """Raise this, or a subclass, in a step's body to end its attempts at once."""

    def __init__(self, message: str = "", *, cause: BaseException | None = None) -> None:
        super().__init__(message)
        if cause is not None:
            self.__cause__ = cause


class StepTimeoutError(RepriseError):
    """One attempt took longer than the step's `timeout`; it is retried like any error."""

    def __init__(self, timeout: timedelta) -> None:
        self.timeout = timeout.total_seconds()
        super().__init__(f"Execution timed out after {format_duration(timeout)}.")


class AtomicStepError(RepriseError):
    """An atomic body returned, and its transaction cannot be committed; nothing of it was written."""

    def __init__(self, step: str, problem: str, *, is_rollback: bool = False) -> None:
        self.step = step
        self.problem = problem
        whose = "the rollback of step" if is_rollback else "step"
        super().__init__(f'The transaction of {whose} "{step}" was rolled back. {problem}')


class OpenTransactionError(RepriseError):
    """A body returned within a transaction that it had begun; it was rolled back, and its connection closed."""

    def __init__(self, step: str, databases: Sequence[str]) -> None:
        self.step = step
        self.databases = list(databases)
        named = ", ".join(f'"{one}"' for one in self.databases)
        super().__init__(
            f'The body of step "{step}" left a transaction open on the database {named}. It was rolled back, and what '
            'the body wrote in it is lost. Put "with transaction.atomic():" around writes that belong together, within '
            "one function; in an async body, call that function through sync_to_async."
        )


class DelayFunctionError(NonRetryableError):
    """The function given as `delay` failed, so the step is not tried again."""

    def __init__(self, step: str, cause: BaseException) -> None:
        self.step = step
        problem = str(cause) or type(cause).__name__
        text = f'The delay function of step "{step}" failed, so the step is not retried: {problem}'
        super().__init__(text, cause=cause)


class WorkerLostError(RepriseError):
    """The worker died under the step's body, again and again."""

    def __init__(self, step: str, losses: int) -> None:
        self.step = step
        self.losses = losses
        super().__init__(
            f'Step "{step}" ran alone in its worker {losses:,} times, and each time the worker died. '
            "Check its body for crashes and for running out of memory, then restart the instance."
        )


class RollbackNotFoundError(RepriseError):
    """The handler does not call the step with a rollback any more: its code has changed."""

    def __init__(self, step: str) -> None:
        self.step = step
        super().__init__(
            f'Step "{step}" was started with a rollback, but a replay of the handler no longer calls it with one, so '
            "there is no function to undo it. Bring the code back and retry the rollback, or undo it by hand."
        )


class StepConfigError(RepriseError, ValueError):
    """A step was called with an option that does not exist, or with a value that breaks its rule."""

    def __init__(self, option: str, value: object, rule: str, *, what: str = "Step options") -> None:
        self.option = option
        self.value = _shown(value)
        self.rule = rule
        super().__init__(f'{what}: "{option}" is {self.value}. {rule}')


class StepArgumentsError(RepriseError, TypeError):
    """A step's function cannot be called with the arguments that were given for it; it was not called."""

    def __init__(self, step: str, function: str, given: int, problem: str) -> None:
        self.step = step
        self.function = function
        self.problem = problem
        count = "1 argument" if given == 1 else f"{given} arguments"
        super().__init__(
            f'Step "{step}" cannot call {function} with {count}: {problem}. Give its arguments after it: '
            "step.do(name, fn, *args). A parameter named ctx is filled in."
        )


class ParkingError(RepriseError):
    """A durable operation was called inside a step's body, where it cannot be."""

    RULE = (
        "where the instance cannot be parked. Call it from the workflow's handler, before or after that step."
    )

    def __init__(self, operation: str, step: str, body: str, *, rule: str = RULE) -> None:
        self.operation = operation
        self.step = step
        self.body = body
        called = f'step.{operation}("{step}")' if step else f"step.{operation}"
        super().__init__(f'{called} was called inside the body of step "{body}", {rule}')


class BetweenStepsError(RepriseError):
    """A handler did between its steps what only the body of a step may do."""

    def __init__(self, what: str, advice: str) -> None:
        self.what = what
        super().__init__(f"{what} in a workflow's handler, where every replay would repeat it. {advice}")


class NotAwaitedError(RepriseError, AttributeError, TypeError):
    """The result of a durable call was used, and the call was not awaited."""

    def __init__(self, step: str, use: str, call: str) -> None:
        self.step = step
        self.use = use
        super().__init__(
            f'Step "{step}" was called without `await`, and its result is not available yet: {use}. '
            f'Write: await {call}("{step}", …).'
        )


# Of a wait or a workflow


class EventTimeoutError(RepriseError):
    """No event came before the wait's deadline."""

    def __init__(self, step: str, type: str | Sequence[str], timeout: timedelta) -> None:
        self.step = step
        self.type = type
        self.timeout = timeout.total_seconds()
        types = f'"{type}"' if isinstance(type, str) else " or ".join(f'"{one}"' for one in type)
        super().__init__(f'Step "{step}" got no event of type {types} within {format_duration(timeout)}.')


class RequestTimeoutError(EventTimeoutError):
    """Nobody answered before the request expired."""

    def __init__(self, step: str, type: str | Sequence[str], timeout: timedelta) -> None:
        super().__init__(step, type, timeout)
        self.args = (f'Nobody answered request "{step}" within {format_duration(timeout)}.',)


class InstanceTimeoutError(EventTimeoutError):
    """The instance that a step waits for did not end in time; it goes on."""

    def __init__(self, step: str, workflow: str, id: str, timeout: timedelta) -> None:
        super().__init__(step, f"{workflow}/{id}", timeout)
        self.workflow = workflow
        self.id = id
        self.args = (
            f'Step "{step}" waited {format_duration(timeout)} for instance "{id}" of workflow "{workflow}" to end.',
        )


class ChildWorkflowError(RepriseError):
    """A child did not complete: `status` says how it ended, `error` why. Of a branch, `index` says which (from 0)."""

    def __init__(
        self,
        step: str,
        workflow: str,
        id: str,
        status: str,
        error: ErrorRecord | None = None,
        *,
        index: int | None = None,
    ) -> None:
        self.step = step
        self.workflow = workflow
        self.id = id
        self.status = status
        self.error = error
        self.index = index
        which = f'Child "{id}"' if index is None else f'Branch {index}, child "{id}"'
        why = f": {error.type}: {error.message}" if error is not None else ""
        super().__init__(
            cut(f'{which} of workflow "{workflow}", started by step "{step}", is {status}{why}', 8_000)
        )


class ChildIdTakenError(RepriseError):
    """A child could not be started because another instance has its id, which nobody can choose by accident."""

    def __init__(self, workflow: str, id: str) -> None:
        self.workflow = workflow
        self.id = id
        super().__init__(
            f'A child of workflow "{workflow}" could not be started: its id "{id}" belongs to an instance that this '
            "one did not start. Delete that instance, then restart this one."
        )


class WorkflowTimeoutError(RepriseError):
    """The workflow's `timeout`, or `handler_timeout` for the code between two steps, was exceeded."""

    def __init__(self, limit: str, timeout: timedelta) -> None:
        self.limit = limit
        self.timeout = timeout.total_seconds()
        where = (
            "The handler's code between steps ran longer than its handler_timeout of"
            if limit == "handler_timeout"
            else "The instance, including all its waits, took longer than the workflow's timeout of"
        )
        super().__init__(f"{where} {format_duration(timeout)}.")


class NonDeterminismError(RepriseError):
    """The code no longer fits what is recorded; the instance is paused and nothing is overwritten."""

    def __init__(self, reason: str, *, recorded: str, current: str) -> None:
        self.reason = reason
        self.recorded = recorded
        self.current = current
        super().__init__(
            f"{reason} Recorded: {recorded}. Now: {current}. Deploy code that fits the record and resume, "
            "or restart the instance."
        )


class SecretKeyError(NonDeterminismError):
    """A stored secret cannot be decrypted: this process does not have its key. Nothing is overwritten.

    `needed` is the id of that key, `known` those of the keys that this process has.
    """

    def __init__(self, needed: str, known: Sequence[str]) -> None:
        self.needed = needed
        self.known = list(known)
        keys = f"key{'' if len(self.known) == 1 else 's'} {', '.join(self.known)}"
        super().__init__("A stored secret cannot be decrypted.", recorded=f"key {needed}", current=keys)
        if needed in self.known:
            advice = "It was encrypted with that key, so what is stored was damaged. Restore it from a backup"
        else:
            advice = (
                "Add the missing key to REPRISE_SECRET_KEYS, or to SECRET_KEY_FALLBACKS if it was a SECRET_KEY, and "
                "start the processes again"
            )
        message = f"{self.reason} It needs key {needed}; this process has {keys}. {advice}; then resume the instance."
        self.args = (message,)


class CodeChangedError(RepriseError):
    """The handler is not the one that the instance started under; its workflow says `on_code_change="pause"`.

    `recorded` and `current` are the fingerprints of the two.
    """

    def __init__(self, workflow: str, *, recorded: str, current: str) -> None:
        self.workflow = workflow
        self.recorded = recorded
        self.current = current
        super().__init__(
            f'The code of workflow "{workflow}" has changed since this instance started. '
            f"Recorded: {recorded}. Now: {current}. "
            "Accept the new code, or deploy the old code again; the instance then continues."
        )


class UnknownWorkflowError(RepriseError, KeyError):
    """No workflow of this name is declared. A KeyError, so that `in` and `get` of the registry work."""

    __str__ = Exception.__str__  # KeyError's own shows the message as a quoted key

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        self.name = name
        self.known = sorted(known)
        near = difflib.get_close_matches(name[:100], self.known, n=1)
        hint = f'Did you mean "{near[0]}"?' if near else f"Known workflows: {_some(self.known)}."
        super().__init__(
            f"There is no workflow {_shown(name)}. {hint} "
            "Workflows are declared in the workflows.py of an installed app."
        )


class DeclarationError(RepriseError, TypeError):
    """The declaration of a workflow, step or event is invalid; raised at import."""

    def __init__(self, what: str, field: str, rule: str) -> None:
        self.what = what
        self.field = field
        self.rule = rule
        super().__init__(f"Invalid declaration: {what}: {field}: {rule}")


# Of an instance, for those who start and steer it


class InstanceExistsError(RepriseError):
    def __init__(self, workflow: str, id: str) -> None:
        self.workflow = workflow
        self.id = id
        super().__init__(
            f'Workflow "{workflow}" already has an instance "{id}". Choose another id, or use get_or_start().'
        )


class InstanceNotFoundError(RepriseError, LookupError):
    def __init__(self, workflow: str, id: str) -> None:
        self.workflow = workflow
        self.id = id
        super().__init__(f'Workflow "{workflow}" has no instance {_shown(id)}. Ids are unique per workflow.')


class InstanceFinishedError(RepriseError):
    """The instance is final, and what was asked needs one that is not."""

    def __init__(self, workflow: str, id: str, status: str, action: str) -> None:
        self.workflow = workflow
        self.id = id
        self.status = status
        self.action = action
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" is {status}, so {action} is no longer possible. '
            "Only a restart leaves a final status."
        )


class RollbackNotFailedError(RepriseError):
    """There is no failed rollback to be retried."""

    def __init__(self, workflow: str, id: str, status: str, rollback: str) -> None:
        self.workflow = workflow
        self.id = id
        self.status = status
        self.rollback = rollback
        state = f"its rollback is {rollback}" if rollback else "it has no rollback"
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" is {status}, and {state}. Only a rollback that failed can be '
            "retried."
        )


class StepNotFoundError(RepriseError, LookupError):
    """The present generation has no such step at its top level, so it cannot be restarted from there."""

    def __init__(
        self,
        workflow: str,
        id: str,
        step: tuple[object, object, object],
        known: Sequence[tuple[str, str, int]],
    ) -> None:
        self.workflow = workflow
        self.id = id
        self.step = step
        self.known = list(known)
        names = {_step_shown(*one): None for one in self.known}
        near = difflib.get_close_matches(_step_shown(*step), [*names][:NEAR_AMONG], n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        listed = ", ".join([*names][:20]) or "none"
        more = f", and {len(names) - 20:,} more" if len(names) > 20 else ""
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" has no step {_step_shown(*step)} to restart from.{hint} '
            f"Its steps: {listed}{more}."
        )


class RestartError(RepriseError):
    """What a restart would have to keep is not there any more."""

    def __init__(
        self, workflow: str, id: str, step: str, undone: str, first_undone: str, rollback: str = "complete"
    ) -> None:
        self.workflow = workflow
        self.id = id
        self.step = step
        self.undone = undone
        self.first_undone = first_undone
        self.rollback = rollback
        happened = {
            "failed": f"the rollback of step {undone}, which is before it, failed",
            "running": f"step {undone}, which is before it, is being rolled back",
        }
        why = happened.get(rollback, f"step {undone}, which is before it, has been rolled back")
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" cannot be restarted from step {step}: {why}. '
            f"Restart it from step {first_undone} or an earlier one, or from the start."
        )


class InstanceNotFinishedError(RepriseError):
    """Only what is finished can be deleted."""

    def __init__(self, workflow: str, id: str, status: str) -> None:
        self.workflow = workflow
        self.id = id
        self.status = status
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" is {status}. Only a finished instance can be deleted; terminate '
            "it first."
        )


class InstanceNeededError(RepriseError):
    """Another instance waits for the outcome of this one, so it cannot be deleted yet."""

    def __init__(self, workflow: str, id: str, by_workflow: str, by_id: str) -> None:
        self.workflow = workflow
        self.id = id
        self.by_workflow = by_workflow
        self.by_id = by_id
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" cannot be deleted yet: instance "{by_id}" of workflow '
            f'"{by_workflow}" still has to receive its outcome. Try again once that instance has continued or finished.'
        )


class DedupConflictError(RepriseError):
    """The dedup key was used before, for an event with another type or payload."""

    def __init__(self, workflow: str, id: str, dedup_key: str) -> None:
        self.workflow = workflow
        self.id = id
        self.dedup_key = dedup_key
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" already has a different event with dedup key "{dedup_key}". '
            "The first event is kept; send this one with another key."
        )


# Of a schedule, for those who steer it


class ScheduleNotFoundError(RepriseError, LookupError):
    def __init__(self, workflow: str, schedule: str) -> None:
        self.workflow = workflow
        self.schedule = schedule
        super().__init__(f'Workflow "{workflow}" has no schedule "{schedule}".')


class ScheduleNotDeclaredError(RepriseError):
    """The code declares the schedule no more, so it starts nothing."""

    def __init__(self, workflow: str, schedule: str) -> None:
        self.workflow = workflow
        self.schedule = schedule
        super().__init__(
            f'Workflow "{workflow}" no longer declares schedule "{schedule}", so it starts nothing. '
            "Start an instance of the workflow instead."
        )


# Of a request, for those who answer it


class RequestNotFoundError(RepriseError, LookupError):
    """The instance has no request of that name or number."""

    def __init__(self, workflow: str, id: str, request: str | int, waiting: Sequence[str]) -> None:
        self.workflow = workflow
        self.id = id
        self.request = request
        self.waiting = list(waiting)
        named = ", ".join(f'"{one}"' for one in self.waiting[:20]) or "none"
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" has no request {_shown(request)}. '
            f"Waiting for an answer: {named}."
        )


class RequestAnsweredError(RepriseError):
    """Somebody was faster: the first answer counts."""

    def __init__(self, request: str, answered_by: str, answered_at: datetime, comment: str = "") -> None:
        self.request = request
        self.answered_by = answered_by
        self.answered_at = answered_at
        self.comment = comment
        super().__init__(
            f'Request "{request}" was answered by {answered_by} at {answered_at:%Y-%m-%d %H:%M:%S} UTC. '
            "The first answer counts; this one was not recorded."
        )


class RequestClosedError(RepriseError):
    """The request waits no more: it has expired, or the workflow has withdrawn it."""

    def __init__(self, request: str, why: str) -> None:
        self.request = request
        self.why = why
        super().__init__(f'Request "{request}" can no longer be answered: {why}.')


class RequestForbiddenError(RepriseError):
    """Others were asked."""

    def __init__(self, request: str, by: str, assignees: Sequence[str]) -> None:
        self.request = request
        self.by = by
        self.assignees = list(assignees)
        super().__init__(
            f'Request "{request}" cannot be answered by {by}. It is assigned to {", ".join(self.assignees)}.'
        )


# Of values and names


class InvalidNameError(RepriseError, ValueError):
    """An id, or the name of a workflow, step or event type, breaks its rule."""

    def __init__(self, what: str, value: object, rule: str) -> None:
        self.what = what
        self.value = _shown(value)
        self.rule = rule
        super().__init__(f"{self.value} cannot be {what}. {rule}")


class InvalidValueError(RepriseError, ValueError):
    """A value cannot be stored. `path` leads to it (`$.items[0].qty`), `code` names the rule it breaks."""

    def __init__(
        self, path: str, code: str, message: str, *, what: str = "value", problem: str = "cannot be stored"
    ) -> None:
        self.path = path
        self.code = code
        self.message = message
        self.what = what
        super().__init__(f"The {what} {problem}. At {path}: {message}")


class ParamError(TypedDict):
    """One wrong field: `path` is `items/0/qty`, and empty for the params as a whole."""

    path: str
    message: str
    code: str


class InvalidParamsError(RepriseError, ValueError):
    """The params (or an event's payload) do not match the declared type; nothing was started or sent."""

    def __init__(self, errors: Sequence[ParamError], *, what: str = "params") -> None:
        self.errors = list(errors)
        self.what = what
        shown = "; ".join(_param_line(error) for error in self.errors[:10])
        more = f"; and {len(self.errors) - 10:,} more" if len(self.errors) > 10 else ""
        super().__init__(f"The {what} {_does(what)} not match the declared type: {shown}{more}")


class LimitError(RepriseError, ValueError):
    """A value is over a limit of docs/guarantees.md; checked before anything is written."""

    def __init__(self, what: str, value: int, limit: int, *, unit: str = "", advice: str = "") -> None:
        self.what = what
        self.value = value
        self.limit = limit
        unit = f" {unit}" if unit else ""
        super().__init__(
            f"The {what} is {value:,}{unit}; the limit is {limit:,}{unit}.{' ' if advice else ''}{advice}"
        )


# Control flow: BaseExceptions, so that `except Exception` in a handler does not end them


class ControlFlow(BaseException):
    """The handler ends here; swallowed by a bare `except`, it takes effect at the next operation."""


class FailWorkflow(ControlFlow):
    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


class AbortWorkflow(ControlFlow):
    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        super().__init__(reason)


class CompleteWorkflow(ControlFlow):
    def __init__(self, output: object = None) -> None:
        self.output = output
        super().__init__("The workflow is complete.")


def _some(names: Sequence[str], most: int = 20) -> str:
    more = f", and {len(names) - most:,} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more


def _does(what: str) -> str:
    """Agree with "params" and "arguments of …", and with "payload"."""
    return "do" if what.split()[0].endswith("s") else "does"


def _param_line(error: ParamError) -> str:
    return f"{error['path'] or 'as a whole'}: {error['message']}"


def _step_shown(kind: object, name: object, count: object) -> str:
    number = "" if count == 1 else f" #{count}"
    return cut(f'{kind} "{name}"{number}', 300)


def _shown(value: object) -> str:
    """Show a wrong value in a message: short, and whatever its `repr` does."""
    if isinstance(value, FunctionType):
        return f"the function {value.__qualname__.rpartition('<locals>.')[2][:100]}"
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - user code: a repr that raises, or an integer too long to print
        return f"(a value of type {type(value).__qualname__})"
    text = f'"{value}"' if type(value) is str and text[1:-1] == value else text
    return text if len(text) <= 100 else f"{text[:100]}…"
