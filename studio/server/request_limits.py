"""Limit what daphne receives: the size of bodies, the time of requests, the number of idle connections.

Daphne reads a body to its end before Django sees the request, whatever its size and however slowly it comes, so limits
in an ASGI application come too late. Twisted then parses every form in the thread that serves everybody, for nothing:
daphne does not use the result. This puts the limits where bytes arrive, and leaves out the parsing. `limit_daphne` is
called once, before the server starts. No other ASGI server is supported, and no other limit on bodies stands behind it.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

import daphne.server
from daphne.http_protocol import HTTPFactory
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol

from studio.server.limited_channel import LimitedChannel, Limits
from studio.server.limited_request import LimitedRequest

logger = logging.getLogger("studio.refused")


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
