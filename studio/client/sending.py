"""Decide what becomes of an attempt to send a call: its answer, another attempt after a pause, or an error."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Generic, TypeVar

import httpx2

from studio.client.call import Call
from studio.client.errors import (
    BY_STATUS,
    ApiError,
    RateLimitedError,
    UnavailableError,
    UnexpectedAnswerError,
)
from studio.client.settings import API, Settings

T = TypeVar("T")

AGAIN = (429, 502, 503)
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 8.0
_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
JSON_TYPES = ("application/json", "application/problem+json")


class Sending(Generic[T]):
    """A call under way. It does no input or output: the clients send, sleep, and ask it what is next."""

    def __init__(self, settings: Settings, call: Call[T]) -> None:
        self._settings, self._call, self._attempts = settings, call, 0

    def request(self) -> dict[str, Any]:
        """Return the arguments of a request of httpx2."""
        call = self._call
        arguments: dict[str, Any] = {
            "method": call.method,
            "url": f"{self._settings.base_url}{API}{call.path}",
            "params": list(call.query) or None,
            "headers": dict(call.headers),
        }
        if call.body is not None:
            arguments["content"] = _encoded(call.body)
            arguments["headers"]["Content-Type"] = "application/json"
        return arguments

    def pause_after(self, response: httpx2.Response) -> float | None:
        """Return the seconds until the next attempt, or None if this is the answer."""
        if response.status_code not in AGAIN or not self._may_try_again(was_sent=response.status_code == 502):
            return None
        wanted = retry_after(response.headers)
        if wanted is not None and wanted > self._settings.max_wait:
            return None
        return max(wanted or 0.0, self._pause())

    def pause_after_error(self, error: httpx2.RequestError) -> float:
        """Return the seconds until the next attempt. Raises UnavailableError if there is none."""
        was_sent = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout)
        is_hopeless = isinstance(error, httpx2.UnsupportedProtocol) or is_about_tls(error)
        if is_hopeless or not self._may_try_again(was_sent=was_sent):
            raise unreachable(self._settings, error) from error
        return self._pause()

    def answer(self, response: httpx2.Response) -> T:
        """Return what callers get. Raises ApiError."""
        return self._call.read(document_of(response), response.headers.get("ETag", ""))

    def _may_try_again(self, *, was_sent: bool) -> bool:
        self._attempts += 1
        return self._attempts <= self._settings.retries and (self._call.may_be_repeated or not was_sent)

    def _pause(self) -> float:
        longest: float = min(FIRST_PAUSE * 2 ** (self._attempts - 1), LONGEST_PAUSE)
        return longest * (0.5 + random.random() / 2)  # noqa: S311  spreads clients, hides nothing


def document_of(response: httpx2.Response) -> Any:
    """Return the JSON of an answer. Raises ApiError for a refusal, and for what is not an answer of the API."""
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if response.is_redirect:
        where = response.headers.get("Location", "another address")
        detail = f"The server redirects to {_short(where)}. Use the address that it redirects to."
        raise UnexpectedAnswerError(detail, status=response.status_code)
    if kind not in JSON_TYPES:
        raise _not_ours(response, kind or "no type")
    try:
        document = response.json()
    except ValueError:
        raise _not_ours(response, "text that is not JSON") from None
    if response.is_success:
        return document
    if not is_problem(document):
        raise _not_ours(response, "JSON without a problem")
    error = error_of(document, response.status_code)
    if isinstance(error, RateLimitedError):
        error.retry_after = retry_after(response.headers)
    raise error


def is_problem(document: Any) -> bool:
    """Return whether it is a refusal by the API."""
    return isinstance(document, dict) and all(
        isinstance(document.get(key), str) for key in ("detail", "code")
    )


def error_of(problem: Mapping[str, Any], status: int) -> ApiError:
    """Return the error for a refusal by the API."""
    kind = BY_STATUS.get(status, UnexpectedAnswerError)
    errors = problem.get("errors") or ()
    return kind(problem["detail"], status=status, code=problem["code"], errors=errors, problem=problem)


def _not_ours(response: httpx2.Response, what: str) -> ApiError:
    status = response.status_code
    kind = BY_STATUS[status] if status in (502, 503, 504) else UnexpectedAnswerError
    detail = f"The server answered {status} with {_short(what)}, not with the HTTP API of Reprise. Check the address."
    return kind(detail, status=status)


def unreachable(settings: Settings, error: httpx2.RequestError) -> UnavailableError:
    """Return the error for a Studio that does not answer."""
    why = ""
    if isinstance(error, httpx2.PoolTimeout):
        why = "all connections are in use"
    elif isinstance(error, httpx2.TimeoutException):
        why = "it did not answer in time"
    said = why or _short(_ERRNO.sub("", str(error)) or type(error).__name__)
    return UnavailableError(f"{settings.base_url} cannot be reached: {said}.")


def is_about_tls(error: BaseException) -> bool:
    """Return whether the certificate or the handshake was refused: asking again would not help."""
    return "SSL" in str(error) or "CERTIFICATE" in str(error).upper()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the header Retry-After asks for, as a number or as a date."""
    given = headers.get("Retry-After", "").strip()
    if given.isascii() and given.isdigit():
        return float(given[:9])
    try:
        moment = parsedate_to_datetime(given)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)


def _encoded(body: Any) -> bytes:
    """Return JSON. Raises TypeError or ValueError for what JSON does not have, before anything is sent."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # a lone surrogate, which the Studio refuses with its path
        return json.dumps(body, allow_nan=False, separators=(",", ":")).encode()


def _short(text: str) -> str:
    line = "".join(char if char.isprintable() else "·" for char in " ".join(text.split()))
    return (line if len(line) <= 200 else line[:199] + "…").rstrip(".")
