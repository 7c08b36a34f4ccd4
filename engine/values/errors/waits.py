"""Errors of a wait: for an event, for people, for another instance; and of an answer from people."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from engine.values.durations import format_duration
from engine.values.error_record import ErrorRecord, cut
from engine.values.errors.base import RepriseError, shown


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


class RequestNotFoundError(RepriseError, LookupError):
    """The instance has no request of that name or number."""

    def __init__(self, workflow: str, id: str, request: str | int, waiting: Sequence[str]) -> None:
        self.workflow = workflow
        self.id = id
        self.request = request
        self.waiting = list(waiting)
        named = ", ".join(f'"{one}"' for one in self.waiting[:20]) or "none"
        super().__init__(
            f'Instance "{id}" of workflow "{workflow}" has no request {shown(request)}. '
            f"Waiting for an answer: {named}."
        )


class RequestAnsweredError(RepriseError):
    """Another person has already answered: only the first answer counts."""

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
