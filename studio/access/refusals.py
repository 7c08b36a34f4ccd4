"""Refuse a request before Django sees it: a short text, the headers of every answer, one line in the log."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from studio.access.addresses import UNKNOWN, sender_of
from studio.access.problem import written_for

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
# Django, Channels and Starlette each type it in their own way.
Application = Callable[[Any, Any, Any], Awaitable[None]]

log = logging.getLogger("studio.refused")

RETRY_AFTER_S = 5


@dataclass(frozen=True, slots=True)
class Refusal:
    """The status and text of an answer, and headers of its own."""

    status: int
    text: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


async def refuse(scope: Scope, receive: Receive, send: Send, refusal: Refusal) -> None:
    """Answer a request, or reject the handshake of a socket."""
    log.info("Refused a request from %s: %s", _sender(scope), refusal.text)
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close"})
        return
    kind, body = written_for(str(scope["path"]), refusal.status, refusal.text)
    headers = [
        (b"content-type", kind),
        (b"content-length", b"%d" % len(body)),
        (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
        (b"x-frame-options", b"DENY"),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-store"),
        (b"connection", b"close"),
        *refusal.headers,
    ]
    if refusal.status == 503:
        headers.append((b"retry-after", b"%d" % RETRY_AFTER_S))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _sender(scope: Scope) -> str:
    found = sender_of(scope)
    return "a local socket" if found == UNKNOWN else found
