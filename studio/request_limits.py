"""Limit what daphne receives: the size of bodies, the time of requests, the number of idle connections.

Daphne reads a body to its end before Django sees the request, whatever its size and however slowly it comes, so limits
in an ASGI application come too late. Twisted then parses every form in the thread that serves everybody, for nothing:
daphne does not use the result. This puts the limits where bytes arrive, and leaves out the parsing. `limit_daphne` is
called once, before the server starts. No other ASGI server is supported, and no other limit on bodies stands behind it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import daphne.server
from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from twisted.internet import reactor
from twisted.internet.error import AlreadyCalled, AlreadyCancelled
from twisted.web.http import HTTPChannel

from studio.anonymous_queue import TOO_MANY, QueueFullError
from studio.plain_answers import RETRY_AFTER_S

logger = logging.getLogger(__name__)

# Who is not signed in may send no more than this.
SMALL = 64 * 1024
# A refused client waits this long for its answer, so that repeating the request costs the server little.
REFUSAL_TAKES_SECONDS = 0.5
# A client that is still sending when the connection closes sees a reset instead of the answer.
LINGER_SECONDS = 2
# By default the kernel buffers several megabytes for a connection.
RECEIVE_BUFFER = 128 * 1024
# Between two reads of data that is discarded.
PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class Limits:
    """`timeout_seconds` start with the connection, and again after each answer.

    `may_be_large` decides whether a body over 64 KiB is read; it may raise QueueFullError. `is_known` tells whether a
    view has recently accepted the sender's session. Both get an ASGI scope.
    """

    max_body_bytes: int
    timeout_seconds: float
    may_be_large: Callable[[dict[str, Any]], Awaitable[bool]]
    is_known: Callable[[dict[str, Any]], bool] = lambda scope: False
    max_waiting: int = 400  # connections without a complete request


def limit_daphne(limits: Limits) -> None:
    """Make the server that daphne starts in this process keep to `limits`."""
    waiting: dict[LimitedChannel, None] = {}

    class LimitedFactory(HTTPFactory):
        def buildProtocol(self, addr: Any) -> Any:  # noqa: N802  Twisted's name
            protocol = super().buildProtocol(addr)
            protocol.requestFactory = LimitedRequest
            protocol.limits, protocol.waiting = limits, waiting
            return protocol

    # Without Twisted's wrapper, which negotiates HTTP/2 over TLS: that is the job of a proxy.
    LimitedFactory.protocol = LimitedChannel
    # Daphne has no option for this; its server looks these names up when it starts.
    daphne.server.HTTPFactory = LimitedFactory
    daphne.server.WebSocketFactory = LoggedSocketFactory


class LimitedChannel(HTTPChannel):
    """A connection. Each request has a time limit, from when it could start until it is complete."""

    abortTimeout = 300  # noqa: N815 - seconds to send the rest of an answer when it is closed

    limits: Limits
    waiting: dict[LimitedChannel, None]

    def __init__(self) -> None:
        super().__init__()
        self.refused = False
        self.is_known = False
        self._clock: Any = None
        self._has_begun = False

    @property
    def request_target(self) -> bytes:
        """The target in the first line of the request."""
        target: bytes = self._path  # Twisted keeps it only here until the request is complete
        return target

    def connectionMade(self) -> None:  # noqa: N802
        super().connectionMade()
        handle = self.transport.getHandle()
        if isinstance(handle, socket.socket):  # not under TLS
            handle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        self._wait()

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        self._has_begun = True
        if not self.refused:
            super().dataReceived(data)
        if self.refused:
            self.transport.pauseProducing()
            reactor.callLater(PAUSE_SECONDS, self.read_on)

    def headerReceived(self, line: bytes) -> bool:  # noqa: N802
        try:
            return bool(super().headerReceived(line))
        except ValueError:  # a Content-Length with more digits than Python parses
            self._respondToBadRequestAndDisconnect()
            return False

    def allContentReceived(self) -> None:  # noqa: N802
        self._stop_waiting()
        super().allContentReceived()

    def requestDone(self, request: Any) -> None:  # noqa: N802
        self.is_known = self.limits.is_known(request.scope_of_headers())
        self._wait()
        super().requestDone(request)

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        self._stop_waiting()
        super().connectionLost(reason)

    def lineLengthExceeded(self, line: bytes) -> None:  # noqa: N802
        self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "A line of the request is too long.")

    def _respondToBadRequestAndDisconnect(self) -> None:  # noqa: N802
        self.refuse(HTTPStatus.BAD_REQUEST, "The request cannot be read.")

    def read_on(self) -> None:
        """Resume reading after a pause."""
        if self.transport.connected and not self.transport.disconnecting:
            self.transport.resumeProducing()

    def refuse(self, status: HTTPStatus, message: str) -> None:
        """Answer, discard what still comes, and close the connection."""
        if self.refused:
            return
        # `paused` keeps Twisted from parsing further lines.
        self.refused = self.paused = True
        self.clearLineBuffer()
        logger.info(
            "Refused a request from %s: %s", getattr(self.getPeer(), "host", "a local socket"), message
        )
        self._stop_waiting()
        self._clock = reactor.callLater(REFUSAL_TAKES_SECONDS, self._answer, status, message)

    def _answer(self, status: HTTPStatus, message: str) -> None:
        body = message.encode() + b"\n"
        is_busy = status is HTTPStatus.SERVICE_UNAVAILABLE
        retry_after = f"Retry-After: {RETRY_AFTER_S}\r\n" if is_busy else ""
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\n"
            "Content-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\n"
            "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"
            "X-Frame-Options: DENY\r\n"
            "X-Content-Type-Options: nosniff\r\n"
            "Cache-Control: no-store\r\n"
            f"{retry_after}"
            "Connection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self._clock = reactor.callLater(LINGER_SECONDS, self.loseConnection)

    def _wait(self) -> None:
        self._stop_waiting()
        self._has_begun = False
        self._clock = reactor.callLater(self.limits.timeout_seconds, self._be_late)
        self.waiting[self] = None
        if len(self.waiting) > self.limits.max_waiting:
            # Drop the connection that has waited longest, but a stranger's before one of somebody who is signed in.
            strangers = (one for one in self.waiting if not one.is_known)
            next(strangers, next(iter(self.waiting))).give_up()

    def give_up(self) -> None:
        """Close an idle connection, after sending what is left."""
        self._stop_waiting()
        self.timeoutConnection()

    def _be_late(self) -> None:
        if self._has_begun:
            seconds = self.limits.timeout_seconds
            self.refuse(HTTPStatus.REQUEST_TIMEOUT, f"The request was not complete within {seconds:g} s.")
        else:
            self.give_up()

    def _stop_waiting(self) -> None:
        self.waiting.pop(self, None)
        if self._clock is not None:
            with suppress(AlreadyCalled, AlreadyCancelled):
                self._clock.cancel()
            self._clock = None


class LoggedSocket(WebSocketProtocol):
    """A socket that logs a handshake it cannot parse."""

    def failHandshake(self, reason: str, code: int = 400, **headers: Any) -> None:  # noqa: N802
        # The application logs its own refusals.
        if code != HTTPStatus.FORBIDDEN:
            host = getattr(self.transport.getPeer(), "host", "a local socket")
            logger.info("Refused a request from %s: %s", host, reason)
        super().failHandshake(reason, code, **headers)


class LoggedSocketFactory(WebSocketFactory):
    protocol = LoggedSocket


class LimitedRequest(WebRequest):
    """A request with a size limit, whose body is passed on unparsed."""

    channel: LimitedChannel

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.limits = self.channel.limits
        self.body_bytes = 0
        self._asking: asyncio.Task[bool] | None = None
        self._received: tuple[bytes, bytes, bytes] | None = None

    def gotLength(self, length: int | None) -> None:  # noqa: N802
        """Check the size after the headers, before the body; `length` is None for a chunked one."""
        if self.requestHeaders.hasHeader(b"Content-Encoding"):
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Send the body without any content encoding.")
        else:
            self._grow(length or 0)
        super().gotLength(0 if self.channel.refused else length)

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        self.body_bytes += len(data)
        self._grow(self.body_bytes)
        if not self.channel.refused:
            super().handleContentChunk(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # noqa: N802
        """Do what Twisted does, without parsing query and body."""
        if self.channel.refused:
            return
        if self._asking is not None and not self._asking.done():
            self._received = command, path, version
            return
        self.content.seek(0)
        self.args: dict[bytes, list[bytes]] = {}
        self.method, self.uri, self.clientproto = command, path, version
        self.path = path.split(b"?", 1)[0]
        self.process()

    def connectionLost(self, reason: Any) -> None:  # noqa: N802
        """Leave the queue in which the question about the body's size may be waiting."""
        if self._asking is not None:
            self._asking.cancel()
        super().connectionLost(reason)

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """Log daphne's own refusals, too."""
        logger.info("Refused a request from %s: %s", self.getClientIP(), body)
        super().basic_error(status, status_text, body)

    def _grow(self, size: int) -> None:
        """Refuse a body of this size, or find out whether it is allowed."""
        if size > self.limits.max_body_bytes:
            self._refuse_large(self.limits.max_body_bytes)
        elif size > SMALL and self._asking is None and not self.channel.refused:
            self.channel.transport.pauseProducing()
            self._asking = asyncio.ensure_future(self.limits.may_be_large(self._scope()))
            self._asking.add_done_callback(self._told)

    def scope_of_headers(self) -> dict[str, Any]:
        """Return the part of an ASGI scope that is still known when the request is over."""
        headers = self.requestHeaders.getAllRawHeaders()
        return {"headers": [(name.lower(), value) for name, values in headers for value in values]}

    def _scope(self) -> dict[str, Any]:
        peer = self.client
        return self.scope_of_headers() | {
            "type": "http",
            "path": unquote(self.channel.request_target.split(b"?", 1)[0].decode("latin1")),
            "root_path": self._root_path(),
            "client": [peer.host, peer.port] if hasattr(peer, "host") else None,
        }

    def _root_path(self) -> str:
        """Return what daphne will put into the scope."""
        given = self.requestHeaders.getRawHeaders(b"Daphne-Root-Path")
        return unquote(given[-1].decode("latin1")) if given else self.server.root_path

    def _told(self, asked: asyncio.Task[bool]) -> None:
        if asked.cancelled() or self._disconnected:
            return
        error = asked.exception()
        if isinstance(error, QueueFullError):
            self._refuse(HTTPStatus(TOO_MANY.status), TOO_MANY.text)
        elif error is not None:
            logger.error("Cannot tell how large a body may be", exc_info=error)
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "The request could not be checked.")
        elif not asked.result():
            self._refuse_large(SMALL)
        self.channel.read_on()
        if self._received is not None:
            self.requestReceived(*self._received)

    def _refuse_large(self, limit: int) -> None:
        self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body may have {limit} bytes at most.")

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        # Do not promise "100 Continue".
        self.requestHeaders.removeHeader(b"Expect")
        self.channel.refuse(status, message)
