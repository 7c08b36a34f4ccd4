"""Refuse requests by their headers, before Django reads them.

What no browser sends would make Django fail. A socket is opened only from a known origin.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest
from django.utils.http import parse_header_parameters

from engine.configuration import setting
from studio.access.cookies import broken_cookie, deletion_of
from studio.access.refusals import Application, Receive, Refusal, Scope, Send, refuse

_CHARSET = re.compile(rb"charset\s*(\*?)\s*=\s*\"?([^;\"\s]*)", re.IGNORECASE)

PORTS = {"http": 80, "https": 443}


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
    kinds = [value for header, value in scope["headers"] if header == b"content-type"]
    if not all(map(_is_utf8, kinds)):
        return Refusal(415, "Send text in UTF-8.")
    if not _is_readable(b",".join(kinds)):
        return Refusal(415, "The header Content-Type cannot be read.")
    return None


def _is_utf8(content_type: bytes) -> bool:
    """Tell whether a content type names no charset but UTF-8. Some of Python's codecs do not even decode to text."""
    found = _CHARSET.findall(content_type)
    return all(not star and charset.lower() in (b"utf-8", b"utf8") for star, charset in found)


def _is_readable(content_type: bytes) -> bool:
    """Tell whether Django can read a content type; it reads that of every request, before any view."""
    try:
        parse_header_parameters(content_type.decode("latin1"))
    except Exception:  # noqa: BLE001  encodings of parameters fail in many ways
        return False
    return True


def _is_host_allowed(scope: Scope) -> bool:
    """Check the Host header as Django does for pages."""
    try:
        _Handshake(scope).get_host()
    except DisallowedHost:
        return False
    return True


class _Handshake(HttpRequest):
    """What Django reads of a request to find its scheme and host."""

    def __init__(self, scope: Scope) -> None:
        super().__init__()
        self._is_tls = scope.get("scheme") in ("wss", "https")
        server = scope.get("server") or ("", "")
        self.META = {"SERVER_NAME": str(server[0]), "SERVER_PORT": str(server[1]), "HTTP_HOST": ""}
        for name, value in scope["headers"]:
            self.META[f"HTTP_{name.decode('latin1').upper().replace('-', '_')}"] = value.decode("latin1")

    def _get_scheme(self) -> str:
        return "https" if self._is_tls else "http"


class OriginCheck:
    """Let a socket open only from an origin of the setting ORIGINS, compared whole: scheme, host and port.

    Without that setting, the origin must be the one that the socket is opened at, or one of CSRF_TRUSTED_ORIGINS.

    Channels' own AllowedHostsOriginValidator compares hosts only: a page of another program on another port of the
    same machine would pass, and the browser sends it our cookies.
    """

    def __init__(self, application: Application) -> None:
        self.application = application
        setting("ORIGINS")  # one that cannot be used stops the start

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = [value.decode("latin1") for name, value in scope["headers"] if name == b"origin"]
        # Compared as text: browsers write an origin in one way only.
        if len(given) == 1 and given[0].lower() in origins_of(scope):
            await self.application(scope, receive, send)
        else:
            await refuse(
                scope, receive, send, Refusal(403, "A page from another origin cannot open a socket.")
            )


def origins_of(scope: Scope) -> set[str]:
    """Return the origins that may open the socket of a handshake, whose Host header has been checked."""
    listed = setting("ORIGINS")
    if listed is None:
        request = _Handshake(scope)
        listed = [f"{request.scheme}://{request.get_host()}", *settings.CSRF_TRUSTED_ORIGINS]
    return {text for origin in listed if "*" not in origin for text in written(origin)}


def written(origin: str) -> list[str]:
    """Return the spellings of an origin: in lower case, with and without the port if it is the default one."""
    parts = urlsplit(origin.lower())
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = parts.port or PORTS.get(parts.scheme)
    whole = f"{parts.scheme}://{host}:{port}"
    return [whole, f"{parts.scheme}://{host}"] if port == PORTS.get(parts.scheme) else [whole]
