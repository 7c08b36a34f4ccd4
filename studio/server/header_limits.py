"""Refuse headers that no browser sends and that would make Django fail, before it reads them."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest

from studio.access.cookies import broken_cookie, deletion_of
from studio.access.refusals import Application, Receive, Refusal, Scope, Send, refuse

_CHARSET = re.compile(rb"charset\s*(\*?)\s*=\s*\"?([^;\"\s]*)", re.IGNORECASE)


class HeaderLimits:
    """Check the headers of requests that `applies_to` accepts."""

    def __init__(self, application: Application, applies_to: Callable[[Scope], bool]) -> None:
        self.application = application
        self.applies_to = applies_to

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = refusal_of(scope) if self.applies_to(scope) else None
        if refusal is None:
            await self.application(scope, receive, send)
        else:
            await refuse(scope, receive, send, refusal)


def refusal_of(scope: Scope) -> Refusal | None:
    """Return why the headers of a request or a handshake are refused; None if they are fine."""
    name = broken_cookie(scope["headers"])
    if name:
        header = (b"set-cookie", deletion_of(name).encode("ascii"))
        return Refusal(400, "A cookie of this site was not valid. It was deleted.", (header,))
    if scope["type"] == "websocket" and not _is_host_allowed(scope):
        return Refusal(403, "This host name is not allowed.")
    for header, value in scope["headers"]:
        if header == b"content-type" and not _is_utf8(value):
            return Refusal(415, "Send forms in UTF-8.")
    return None


def _is_utf8(content_type: bytes) -> bool:
    """Tell whether a content type names no charset but UTF-8. Some of Python's codecs do not even decode to text."""
    found = _CHARSET.findall(content_type)
    return all(not star and charset.lower() == b"utf-8" for star, charset in found)


def _is_host_allowed(scope: Scope) -> bool:
    """Check the Host header as Django does for pages."""
    headers = {name: value.decode("latin1") for name, value in scope["headers"]}
    server = scope.get("server") or ("", "")
    request = HttpRequest()
    request.META = {
        "SERVER_NAME": str(server[0]),
        "SERVER_PORT": str(server[1]),
        "HTTP_HOST": headers.get(b"host", ""),
    }
    if b"x-forwarded-host" in headers:
        request.META["HTTP_X_FORWARDED_HOST"] = headers[b"x-forwarded-host"]
    try:
        request.get_host()
    except DisallowedHost:
        return False
    return True
