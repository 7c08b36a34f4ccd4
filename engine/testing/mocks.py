"""Mocks: what happens in a test instead of bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.replay.attempts.attempt import AttemptedOperation
from engine.replay.records.history import AttemptRecord
from engine.testing.errors import WorkflowTestError
from engine.testing.targets import Target, by_number
from engine.values.errors import StepTimeoutError
from engine.values.states import AttemptPhase

NOTHING: Any = object()  # None is a result


@dataclass(slots=True, eq=False)
class Mock:
    """The outcome of a call: a result, an error, or the result of another function."""

    what: str  # for messages
    target: Target | None  # None: a workflow's
    result: Any = NOTHING
    error: BaseException | type[BaseException] | None = None
    call: Callable[..., Any] | None = None
    times: int | None = None
    allow_unused: bool = False
    used: int = 0
    is_timeout: bool = False

    def __post_init__(self) -> None:
        given = [self.result is not NOTHING, self.error is not None, self.call is not None, self.is_timeout]
        if given.count(True) != 1:
            raise WorkflowTestError(f"{self.what}: pass one of result=, error= and call=.")
        is_class = isinstance(self.error, type) and issubclass(self.error, BaseException)
        if self.error is not None and not is_class and not isinstance(self.error, BaseException):
            raise WorkflowTestError(f"{self.what}: error= is {self.error!r}; it must be an exception.")
        if self.call is not None and not callable(self.call):
            raise WorkflowTestError(f"{self.what}: call= is {self.call!r}; it must be a function.")
        if self.times is not None and (type(self.times) is not int or self.times < 1):
            raise WorkflowTestError(
                f"{self.what}: times= is {self.times!r}; it must be an integer from 1 on."
            )

    @property
    def is_left(self) -> bool:
        return self.times is None or self.used < self.times

    @property
    def is_unused(self) -> bool:
        return not self.allow_unused and self.used < (self.times or 1)

    def outcome(self, timeout: Any = None) -> Callable[..., Any]:
        """Return a function to call instead of the mocked one, and count the use."""
        self.used += 1
        if self.call is not None:
            return self.call

        def mocked(*args: Any, **kwargs: Any) -> Any:
            if self.is_timeout:
                raise StepTimeoutError(timeout)
            if self.error is not None:
                raise self.error() if isinstance(self.error, type) else self.error.with_traceback(None)
            return self.result

        return mocked


class Mocks:
    """All mocks of a test, in the order in which they were made: the first with uses left is used."""

    def __init__(self) -> None:
        self._of_steps: list[Mock] = []
        self._of_workflows: dict[str, list[Mock]] = {}

    def add(self, mock: Mock) -> None:
        same = [one for one in self._of_steps if one.target == mock.target]
        self._append(same, mock)
        self._of_steps.append(mock)

    def add_of_workflow(self, workflow: str, mock: Mock) -> None:
        self._append(self._of_workflows.setdefault(workflow, []), mock)
        self._of_workflows[workflow].append(mock)

    def _append(self, before: list[Mock], mock: Mock) -> None:
        if any(one.times is None for one in before):
            raise WorkflowTestError(
                f"{mock.what} is already mocked for every call, so this mock would never be used. "
                "Pass times= to the first mock."
            )

    def of_step(self, operation: AttemptedOperation, attempt: AttemptRecord) -> Mock | None:
        is_rollback = attempt.phase == AttemptPhase.ROLLBACK
        candidates = [one for one in self._of_steps if one.is_left]
        steps = by_number(operation.cycle) if candidates else {}
        for one in candidates:
            if one.target is not None and one.target.fits(operation.record, steps, is_rollback=is_rollback):
                return one
        return None

    def of_workflow(self, workflow: str) -> Mock | None:
        return next((one for one in self._of_workflows.get(workflow, ()) if one.is_left), None)

    def timeouts(self) -> list[Mock]:
        """Return the forced timeouts that have not happened yet."""
        return [one for one in self._of_steps if one.is_timeout and one.is_left]

    def unused(self) -> list[str]:
        of_workflows = [one for mocks in self._of_workflows.values() for one in mocks]
        return [_told(one) for one in (*self._of_steps, *of_workflows) if one.is_unused]


def _told(mock: Mock) -> str:
    return mock.what if mock.times is None else f"{mock.what} (used {mock.used} of {mock.times} times)"
