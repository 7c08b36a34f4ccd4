"""Errors of a step's work: what its function, its attempts or its transaction did."""

from collections.abc import Sequence
from datetime import timedelta

from engine.values.durations import format_duration
from engine.values.errors.base import RepriseError
from engine.values.json_type import JSON


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
