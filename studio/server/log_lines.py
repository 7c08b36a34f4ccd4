"""Lines of the log: each has the id of its request, as the answer does; a refused request has only one."""

import logging
import secrets
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, cast

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

NO_REQUEST = "-"
REFUSING_LOGGERS = ("django.request", "django.security")
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


class RefusalFilter(logging.Filter):
    """Keep the log at one line for each request that Django refuses: no traceback of a 4xx, no second line."""

    def filter(self, record: logging.LogRecord) -> bool:
        if (
            not record.name.startswith(REFUSING_LOGGERS)
            or not 400 <= getattr(record, "status_code", 500) < 500
        ):
            return True
        record.exc_info = record.exc_text = None
        # Anybody can cause it, so it is not an error of ours.
        record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        request = getattr(record, "request", None)
        is_second = getattr(request, "_is_refusal_logged", False)
        if request is not None:
            request._is_refusal_logged = True
        return not is_second
