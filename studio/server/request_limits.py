"""Limit what daphne receives: the size of bodies, the time of requests, the number of idle connections.

Daphne reads a body to its end before Django sees the request, whatever its size and however slowly it comes, so limits
in an ASGI application come too late. Twisted then parses every form in the thread that serves everybody, for nothing:
daphne does not use the result. This puts the limits where bytes arrive, and leaves out the parsing. `limit_daphne` is
called once, before the server starts. No other ASGI server is supported, and no other limit on bodies stands behind it.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import daphne.server
from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol

from studio.access.addresses import sender_of
from studio.access.anonymous_queue import TOO_MANY, QueueFullError
from studio.api.stream import flow
from studio.api.stream.flow import Flow
from studio.server.large_bodies import LargeBodies
from studio.server.limited_channel import SMALL, LimitedChannel, Limits

logger = logging.getLogger("studio.refused")

of_strangers = LargeBodies()


class LimitedRequest(WebRequest):
    """A request with a size limit, whose body is passed on unparsed."""

    channel: LimitedChannel

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.limits = self.channel.limits
        self.is_limited = True
        self.body_bytes = 0
        self.strangers_bytes = 0  # of a body over 64 KiB at an address that takes more from everybody
        self._asking: asyncio.Task[bool] | None = None
        self._received: tuple[bytes, bytes, bytes] | None = None
        self._flow: Flow | None = None

    def gotLength(self, length: int | None) -> None:  # noqa: N802
        """Check the size after the headers, before the body; `length` is None for a chunked one."""
        self.is_limited = self.limits.applies_to(self._scope())
        if not self.is_limited:
            self.channel.be_patient()
        elif self.requestHeaders.hasHeader(b"Content-Encoding"):
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

    def handle_reply(self, message: dict[str, Any]) -> None:
        """Let a stream know when the connection takes no more. Send no body of an answer to HEAD.

        Daphne leaves out the first part of a body only, and clients would read the rest as the next answer.
        """
        if message["type"] == "http.response.body" and self.method == b"HEAD":
            message = {**message, "body": b""}
        if message["type"] == "http.response.start" and self.channel is not None:
            headers = dict(message.get("headers", ()))
            self._flow = flow.flow_of(headers.pop(flow.HEADER, b""))
            if self._flow is not None:
                message = {**message, "headers": [*headers.items()]}
                self._flow.attach(self.channel.transport.abortConnection)
                self.registerProducer(self._flow, True)
        super().handle_reply(message)

    def check_timeouts(self) -> None:
        """Let streams go on for longer than other answers."""
        if self._flow is None:
            super().check_timeouts()

    def finish(self) -> None:
        if self._flow is not None:
            self.unregisterProducer()
        super().finish()

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """Log daphne's own refusals, too."""
        logger.info("Refused a request from %s: %s", self.getClientIP(), body)
        super().basic_error(status, status_text, body)

    def _grow(self, size: int) -> None:
        """Refuse a body of this size, or find out whether it is allowed."""
        if not self.is_limited:
            return
        if size > (self.strangers_bytes or self.limits.max_body_bytes):
            self._refuse_large(self.strangers_bytes or self.limits.max_body_bytes)
        elif size <= SMALL or self._asking is not None or self.strangers_bytes or self.channel.refused:
            return
        elif (most := self.limits.strangers_bytes(self._scope())) > SMALL:
            self._take_from_stranger(size, min(most, self.limits.max_body_bytes))
        else:
            self.channel.transport.pauseProducing()
            self._asking = asyncio.ensure_future(self.limits.may_be_large(self._scope()))
            self._asking.add_done_callback(self._told)

    def _take_from_stranger(self, size: int, most: int) -> None:
        """Receive a large body of somebody unknown: only some of them at a time."""
        self.strangers_bytes = most
        address = sender_of(self._scope())
        if size > most:
            self._refuse_large(most)
        elif of_strangers.is_full_for(address):
            self._refuse(HTTPStatus(TOO_MANY.status), TOO_MANY.text)
        else:
            of_strangers.enter(address)
            self.notifyFinish().addBoth(lambda _: of_strangers.leave(address))

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


def limit_daphne(limits: Limits) -> None:
    """Make the server that daphne starts in this process keep to `limits`."""
    waiting: dict[LimitedChannel, None] = {}

    class LimitedFactory(HTTPFactory):
        def buildProtocol(self, addr: Any) -> Any:  # noqa: N802  Twisted's name
            protocol = super().buildProtocol(addr)
            protocol.requestFactory = LimitedRequest
            protocol.limits, protocol.waiting = limits, waiting
            return protocol

    flow.serve()
    # Without Twisted's wrapper, which negotiates HTTP/2 over TLS: that is the job of a proxy.
    LimitedFactory.protocol = LimitedChannel
    # Daphne has no option for this; its server looks these names up when it starts.
    daphne.server.HTTPFactory = LimitedFactory
    daphne.server.WebSocketFactory = LoggedSocketFactory


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
