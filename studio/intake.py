"""What daphne takes in: bodies up to a limit, within a time, and nothing encoded.

Daphne reads a body to its end before Django sees the request, whatever its size and however slowly it comes, so the
limits of an ASGI application come too late. This puts them where bytes arrive: `limit_daphne` is called once, before
the server starts.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import daphne.server
from daphne.http_protocol import HTTPFactory, WebRequest
from twisted.internet import reactor
from twisted.internet.error import AlreadyCalled, AlreadyCancelled

logger = logging.getLogger(__name__)

# A client that is still sending when the connection closes sees a reset instead of the answer.
LINGER_SECONDS = 2


@dataclass(frozen=True)
class Limits:
    max_body_bytes: int
    timeout_seconds: float


def limit_daphne(limits: Limits) -> None:
    """Make the server that daphne starts in this process keep to `limits`."""

    class LimitedRequest(_LimitedRequest):
        pass

    LimitedRequest.limits = limits

    class LimitedFactory(HTTPFactory):
        def buildProtocol(self, addr: Any) -> Any:  # noqa: N802  Twisted's name
            protocol = super().buildProtocol(addr)
            protocol.requestFactory = LimitedRequest
            return protocol

    # Daphne has no option for it: the server looks this name up when it starts.
    daphne.server.HTTPFactory = LimitedFactory


class _LimitedRequest(WebRequest):
    """Answers 413, 415 or 408 by itself, throws the rest of the body away and closes the connection."""

    limits: Limits

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.refused = False
        self.body_bytes = 0
        self.deadline = reactor.callLater(self.limits.timeout_seconds, self._refuse_slow)

    def gotLength(self, length: int | None) -> None:  # noqa: N802
        """All headers are here, nothing of the body: `length` is None when it comes in chunks."""
        if self.requestHeaders.hasHeader(b"Content-Encoding"):
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send the body without any content encoding.")
        elif length is not None and length > self.limits.max_body_bytes:
            self._refuse_large()
        super().gotLength(0 if self.refused else length)

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        self.body_bytes += len(data)
        if self.body_bytes > self.limits.max_body_bytes and not self.refused:
            self._refuse_large()
        if not self.refused:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # noqa: N802
        self._stop_clock()
        if self.refused:
            self.channel.loseConnection()
        else:
            super().requestReceived(command, path, version)

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        self._stop_clock()
        super().connectionLost(reason)

    def _refuse_large(self) -> None:
        self._refuse(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"The body may have {self.limits.max_body_bytes} bytes at most.",
        )

    def _refuse_slow(self) -> None:
        if not self.refused:
            self._refuse(
                HTTPStatus.REQUEST_TIMEOUT,
                f"The request was not complete within {self.limits.timeout_seconds:g} s.",
            )

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self.refused = True
        logger.info("Refused a request from %s: %s", self.getClientIP(), message)
        # Nobody waits for "100 Continue" any more.
        self.requestHeaders.removeHeader(b"Expect")
        body = message.encode() + b"\n"
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\n"
            "Content-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\n"
            "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"
            "X-Frame-Options: DENY\r\n"
            "X-Content-Type-Options: nosniff\r\n"
            "Cache-Control: no-store\r\n"
            "Connection: close\r\n\r\n"
        )
        self.channel.transport.write(head.encode("ascii") + body)
        self._stop_clock()
        self.deadline = reactor.callLater(LINGER_SECONDS, self.channel.loseConnection)

    def _stop_clock(self) -> None:
        with suppress(AlreadyCalled, AlreadyCancelled):
            self.deadline.cancel()
