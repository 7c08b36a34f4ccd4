"""Errors of a wait: for an event, for people, for another instance; and of an answer from people."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from engine.values.durations import format_duration
from engine.values.error_record import ErrorRecord, cut
from engine.values.errors.base import RepriseError, shown


class EventTimeoutError(RepriseError):
    """No event came before the wait's deadline.

    Catch it in the handler and decide what happens without the event, or wait longer with `timeout=`.
    """

    def __init__(self, step: str, type: str | Sequence[str], timeout: timedelta) -> None:
        self.step = step
        self.type = type
        self.timeout = timeout.total_seconds()
        types = f'"{type}"' if isinstance(type, str) else " or ".join(f'"{one}"' for one in type)
        super().__init__(f'Step "{step}" got no event of type {types} within {format_duration(timeout)}.')


class RequestTimeoutError(EventTimeoutError):
    """Nobody answered before the request expired.

    Catch it in the handler and take the default decision, or ask others. Increase `timeout=` if people need longer.
    """

    def __init__(self, step: str, type: str | Sequence[str], timeout: timedelta) -> None:
        super().__init__(step, type, timeout)
        self.args = (f'Nobody answered request "{step}" within {format_duration(timeout)}.',)


class InstanceTimeoutError(EventTimeoutError):
    """The instance that a step waits for did not end in time. That instance goes on.

    Catch it in the handler, and wait again or go on without its result.
    """

    def __init__(self, step: str, workflow: str, id: str, timeout: timedelta) -> None:
        super().__init__(step, f"{workflow}/{id}", timeout)
        self.workflow = workflow
        self.id = id
        self.args = (
            f'Step "{step}" waited {format_duration(timeout)} for instance "{id}" of workflow "{workflow}" to end.',
        )


class ChildWorkflowError(RepriseError):
    """A child did not complete: `status` says how it ended, `error` why. Of a branch, `index` says which, from 0.

    Catch it in the handler to go on without the child. Otherwise fix the child's cause, and restart the parent,
    which starts a new child.
    """

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
    """A child could not be started because another instance has its id, which nobody can choose by accident.

    Delete that instance, then restart this one.
    """

    def __init__(self, workflow: str, id: str) -> None:
        self.workflow = workflow
        self.id = id
        super().__init__(
            f'A child of workflow "{workflow}" could not be started: its id "{id}" belongs to an instance that this '
            "one did not start. Delete that instance, then restart this one."
        )


class RequestNotFoundError(RepriseError, LookupError):
    """The instance has no request of that name or number in its current generation.

    Pick one of the requests that the message lists, or wait until the workflow has asked.
    """

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
    """Another person or program has already answered. Only the first answer counts; this one was not recorded.

    Show `answered_by` and `answered_at` to the person. Restart the instance from the request to ask again.
    """

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
    """The request no longer waits: it has expired, the workflow has withdrawn it, or the instance is being rolled
    back.

    Reload what is open with `engine.requests.open_requests()`. Restart the instance from the request to ask again.
    """

    def __init__(self, request: str, why: str) -> None:
        self.request = request
        self.why = why
        super().__init__(f'Request "{request}" can no longer be answered: {why}.')


class RequestForbiddenError(RepriseError):
    """The user is neither one of the request's assignees nor a superuser. Nothing was recorded.

    Let one of `assignees` answer, or add the user to a group that is one of them.
    """

    def __init__(self, request: str, by: str, assignees: Sequence[str]) -> None:
        self.request = request
        self.by = by
        self.assignees = list(assignees)
        super().__init__(
            f'Request "{request}" cannot be answered by {by}. It is assigned to {", ".join(self.assignees)}.'
        )
