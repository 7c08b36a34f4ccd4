"""What can go wrong: one class a situation, with the fields of the problem that the Studio answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict


class WrongField(TypedDict):
    """One thing that is wrong with a request: where, as in `params/items/0/qty`, and the rule."""

    path: str
    code: str
    message: str


class ClientError(Exception):
    """Anything that this client raises about a request."""


class ApiError(ClientError):
    """The Studio refused a request, or could not answer it.

    `status` is that of HTTP, 0 if there was no answer; `code` is for programs, `detail` a sentence; `errors` names
    the wrong fields; `problem` is the whole answer, with keys such as `limit`.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int = 0,
        code: str = "",
        errors: Sequence[WrongField] = (),
        problem: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail, self.status, self.code, self.errors = detail, status, code, tuple(errors)
        self.problem = dict(problem or {})


class NotAuthenticatedError(ApiError):
    """The token is missing, unknown, expired or revoked (401)."""


class NotAllowedError(ApiError):
    """The token, or its owner, may not do this (403)."""


class NotFoundError(ApiError):
    """There is nothing at this address, or the token may not see it (404)."""


class ConflictError(ApiError):
    """The state of the instance does not allow this, an id is in use, or the state is another by now (409, 412)."""


class InvalidError(ApiError):
    """The request is wrong; `errors` says where (400, 405, 408, 413, 414, 415, 422, 431)."""


class RateLimitedError(ApiError):
    """Too many requests, for longer than the client waits (429). Wait `retry_after` seconds."""

    retry_after: float | None = None


class UnavailableError(ApiError):
    """The Studio could not be reached, or answered 504, or 502 or 503 also when asked again."""


class UnexpectedAnswerError(ApiError):
    """What answered is not the HTTP API of Reprise: a page, a redirect, or an error of the server (500)."""


class AddressError(ClientError, ValueError):
    """The address of the Studio, or the token, cannot be used. The message never contains the token."""


class WaitTimeoutError(ClientError, TimeoutError):
    """The instance has not ended in time."""


BY_STATUS: dict[int, type[ApiError]] = {
    400: InvalidError,
    401: NotAuthenticatedError,
    403: NotAllowedError,
    404: NotFoundError,
    405: InvalidError,
    408: InvalidError,
    409: ConflictError,
    412: ConflictError,
    413: InvalidError,
    414: InvalidError,
    415: InvalidError,
    422: InvalidError,
    429: RateLimitedError,
    431: InvalidError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}
