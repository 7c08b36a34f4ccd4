"""Errors of a step's work: what its function, its attempts or its transaction did."""

from collections.abc import Sequence
from datetime import timedelta

from engine.values.durations import format_duration
from engine.values.error_record import cut
from engine.values.errors.base import RepriseError
from engine.values.json_type import JSON


class StepError(RepriseError):
    """A step failed for good: its attempts are used up, or its error is not retried. Raised at the step's call,
    live and on every replay.

    Catch it in the handler to go on without the step. Otherwise the instance ends as errored: fix the cause, which
    `type` and `message` name, and restart the instance from that step.
    """

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
    """The body of a step raises this, or a subclass, to end the step's attempts at once.

    Raise it where another attempt cannot help, such as for a declined card. The handler gets a StepError with its
    type and message.
    """

    def __init__(self, message: str = "", *, cause: BaseException | None = None) -> None:
        super().__init__(message)
        if cause is not None:
            self.__cause__ = cause


class StepTimeoutError(RepriseError):
    """One attempt took longer than the step's `timeout`. It is recorded with the attempt and retried like any
    error.

    Increase `timeout`, or make the body faster: split it into steps. In a sync body, return when `ctx.cancelled` is
    set.
    """

    def __init__(self, timeout: timedelta) -> None:
        self.timeout = timeout.total_seconds()
        super().__init__(f"Execution timed out after {format_duration(timeout)}.")


class AtomicStepError(RepriseError):
    """An atomic body returned, and its transaction could not be committed. Nothing of it was written.

    Read the second sentence of the message. Usually an error of the database was caught inside the body: wrap that
    statement in `transaction.atomic()`, or let the error out.
    """

    def __init__(self, step: str, problem: str, *, is_rollback: bool = False) -> None:
        self.step = step
        self.problem = problem
        whose = "the rollback of step" if is_rollback else "step"
        super().__init__(f'The transaction of {whose} "{step}" was rolled back. {problem}')


class OpenTransactionError(RepriseError):
    """A body returned within a transaction that it had begun. The transaction was rolled back and its connection
    closed.

    Use `with transaction.atomic():` within one function. In an async body, call that function through
    `sync_to_async`.
    """

    def __init__(self, step: str, databases: Sequence[str]) -> None:
        self.step = step
        self.databases = list(databases)
        named = ", ".join(f'"{one}"' for one in self.databases)
        super().__init__(
            f'The body of step "{step}" left a transaction open on the database {named}. It was rolled back, and what '
            'the body wrote in it is lost. Put "with transaction.atomic():" around writes that belong together, within '
            "one function; in an async body, call that function through sync_to_async."
        )


class StepExhaustedError(RepriseError):
    """The attempts of a step with `on_exhausted="pause"` are used up, so the instance is paused. It cannot be resumed
    before a person has decided what follows. Nothing was changed.

    Fix the cause and call `retry_step()`, or call `fail_step()` or `skip_step()`. The instance goes on when nothing is
    left to decide.
    """

    def __init__(self, workflow: str, id: str, steps: "Sequence[tuple[str, int]]") -> None:
        self.workflow = workflow
        self.id = id
        self.steps = [name for name, _ in steps]
        used = [f'step "{cut(name, 300)}" used up its {_attempts(number)}' for name, number in steps[:_SHOWN]]
        more = f", and so did {len(steps) - _SHOWN:,} more" if len(steps) > _SHOWN else ""
        which = "it" if len(steps) == 1 else "each of them"
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" is paused: {", ".join(used)}{more}. '
            f"Retry, skip or fail {which}; then the instance goes on."
        )


class StepNotExhaustedError(RepriseError):
    """The step does not wait for a decision: it still has attempts, has ended, or was decided by somebody else. Nothing
    was changed.

    Read in the message which steps wait. While other steps run, try again once the instance is paused.
    """

    field = "step"

    def __init__(
        self,
        workflow: str,
        id: str,
        status: str,
        action: str,
        step: tuple[str, int] | None,
        waiting: Sequence[str],
    ) -> None:
        self.workflow = workflow
        self.id = id
        self.status = status
        self.action = action
        self.step = step
        self.waiting = list(waiting)
        super().__init__(f'Instance "{id}" of workflow "{workflow}" {self._problem()}')

    def _problem(self) -> str:
        named = f"step {_numbered(*self.step)}" if self.step else "a step"
        if self.status not in ("paused", "complete", "errored", "terminated") and self.waiting:
            return f"is {self.status.replace('_', ' ')}, not paused yet. Wait for that, then {self.action} {named}."
        known = ", ".join(f'"{cut(name, 300)}"' for name in self.waiting[:_SHOWN])
        which = (
            f"Those that wait for a decision: {known}." if known else "No step of it waits for a decision."
        )
        return f"cannot {self.action} {named}: its attempts are not used up. {which}"


class StepNotSkippableError(RepriseError):
    """A person cannot supply the output of this step now. Nothing was changed.

    Read the reason in the message. Pause the instance first if an attempt runs.
    """

    field = "step"

    def __init__(self, workflow: str, id: str, step: str, count: int, problem: str) -> None:
        self.workflow = workflow
        self.id = id
        self.step = step
        self.count = count
        self.problem = problem
        super().__init__(
            f'Step {_numbered(step, count)} of instance "{id}" of workflow "{workflow}" cannot be skipped: {problem}.'
        )


def _numbered(step: str, count: int) -> str:
    return f'"{cut(step, 300)}"' if count == 1 else f'"{cut(step, 300)}" #{count}'


_SHOWN = 5  # steps in a message


def _attempts(number: int) -> str:
    return "only attempt" if number == 1 else f"{number:,} attempts"


class DelayFunctionError(NonRetryableError):
    """The function given as `delay` raised an error, or returned something that is not a duration. The
    step is not tried again.

    Fix the function: it gets the context and the error, and returns seconds, a timedelta or text such as "10m".
    Then restart the instance from the step.
    """

    def __init__(self, step: str, cause: BaseException) -> None:
        self.step = step
        problem = str(cause) or type(cause).__name__
        text = f'The delay function of step "{step}" failed, so the step is not retried: {problem}'
        super().__init__(text, cause=cause)


class WorkerLostError(RepriseError):
    """The worker died under the step's body, again and again, while the step ran alone.

    Look for what kills a process in the body: memory, a crash in a C extension, `os._exit`. Then restart the
    instance from the step.
    """

    def __init__(self, step: str, losses: int) -> None:
        self.step = step
        self.losses = losses
        super().__init__(
            f'Step "{step}" ran alone in its worker {losses:,} times, and each time the worker died. '
            "Check its body for crashes and for running out of memory, then restart the instance."
        )


class RollbackNotFoundError(RepriseError):
    """The handler no longer calls the step with a rollback, so there is no function to undo the step.

    Deploy the code that has the rollback and call `retry_rollback()`, or undo the step by hand.
    """

    def __init__(self, step: str) -> None:
        self.step = step
        super().__init__(
            f'Step "{step}" was started with a rollback, but a replay of the handler no longer calls it with one, so '
            "there is no function to undo it. Bring the code back and retry the rollback, or undo it by hand."
        )
