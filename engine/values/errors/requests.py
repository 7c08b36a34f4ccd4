"""Errors of a request to people, for those who answer it."""

from collections.abc import Sequence
from datetime import datetime

from engine.values.errors.base import RepriseError, shown


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
