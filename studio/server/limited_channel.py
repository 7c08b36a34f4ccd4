"""A connection to daphne: the time that a request may take, and how many may be idle."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import daphne.server  # noqa: F401 - chooses the reactor
from twisted.internet import reactor
from twisted.internet.error import AlreadyCalled, AlreadyCancelled
from twisted.web.http import HTTPChannel

from studio.access.problem import written_for
from studio.access.refusals import RETRY_AFTER_S

logger = logging.getLogger("studio.refused")

# A refused client waits this long for its answer, so that repeating the request costs the server little.
REFUSAL_TAKES_SECONDS = 0.5
# A client that is still sending when the connection closes sees a reset instead of the answer.
LINGER_SECONDS = 2
# By default the kernel buffers several megabytes for a connection.
RECEIVE_BUFFER = 128 * 1024
# Who is not signed in may send no more than this, except where a view takes more from strangers.
SMALL = 64 * 1024
# Between two reads of data that is discarded.
PAUSE_SECONDS = 0.1


@dataclass(frozen=True)
class Limits:
    """`timeout_seconds` start with the connection, and again after each answer.

    `may_be_large` decides whether a body over 64 KiB is read; it may raise QueueFullError. `is_known` tells whether a
    view has recently accepted the sender's session. `applies_to` tells whether the body of a request is limited at all.
    `strangers_bytes` says what an address takes from everybody; where that is more than 64 KiB, nobody is asked. All
    get an ASGI scope.
    """

    max_body_bytes: int
    timeout_seconds: float
    may_be_large: Callable[[dict[str, Any]], Awaitable[bool]]
    is_known: Callable[[dict[str, Any]], bool] = lambda scope: False
    max_waiting: int = 400  # connections without a complete request
    applies_to: Callable[[dict[str, Any]], bool] = lambda scope: True
    strangers_bytes: Callable[[dict[str, Any]], int] = lambda scope: SMALL


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
        # Twisted keeps it only here, from the first line until the request is complete.
        target: bytes = getattr(self, "_path", b"")
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
        if self.refused:  # by its headers, and it has no body: the clock is that of the answer
            return
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
        path = self.request_target.split(b"?", 1)[0].decode("latin1")
        kind, body = written_for(path, status.value, message)
        is_busy = status is HTTPStatus.SERVICE_UNAVAILABLE
        retry_after = f"Retry-After: {RETRY_AFTER_S}\r\n" if is_busy else ""
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\n"
            f"Content-Type: {kind.decode()}\r\n"
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

    def be_patient(self) -> None:
        """Let the rest of this request take as long as it does."""
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        self.waiting.pop(self, None)
        if self._clock is not None:
            with suppress(AlreadyCalled, AlreadyCancelled):
                self._clock.cancel()
            self._clock = None
