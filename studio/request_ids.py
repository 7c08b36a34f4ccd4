"""An id for each request, on every line that it logs and in the answer."""

import logging
import secrets
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

NO_REQUEST = "-"
request_id: ContextVar[str] = ContextVar("request_id", default=NO_REQUEST)

GetResponse = Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]]


class RequestIdMiddleware:
    """Give each request an id of its own; one sent by the client is not taken over, it could forge lines."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if iscoroutinefunction(self):
            return self._answer_async(request)
        token = request_id.set(secrets.token_hex(6))
        try:
            response = cast(Callable[[HttpRequest], HttpResponse], self.get_response)(request)
            response["X-Request-Id"] = request_id.get()
            return response
        finally:
            request_id.reset(token)

    async def _answer_async(self, request: HttpRequest) -> HttpResponseBase:
        token = request_id.set(secrets.token_hex(6))
        try:
            response = await cast(Callable[[HttpRequest], Awaitable[HttpResponse]], self.get_response)(
                request
            )
            response["X-Request-Id"] = request_id.get()
            return response
        finally:
            request_id.reset(token)


class RequestIdFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = request_id.get()
        return True


class OneLineFormatter(logging.Formatter):
    """Escape control characters of a message, so that data cannot write a line of its own.

    Tracebacks stay as they are.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        record.message = "".join(
            character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
            for character in record.message
        )
        return super().formatMessage(record)
