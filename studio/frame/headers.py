"""The headers of the Studio's own pages, whatever the site around them sets."""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings
from django.http.response import HttpResponseBase

from engine.configuration import setting

HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def set_headers(response: HttpResponseBase, *, is_stored: bool = False) -> None:
    """Add the headers that the response does not have yet. `is_stored` lets browsers keep a copy."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Content-Security-Policy", _policy(tuple(setting("ORIGINS") or ())))
    if not is_stored:
        # Pages hold parameters and results: no copy of them stays in the browser or on the way. Django's own cache of
        # pages respects `private` only.
        response.headers.setdefault("Cache-Control", "no-store, private")


def csrf_header() -> str:
    """Return the name of the request header that carries the CSRF token."""
    return str(settings.CSRF_HEADER_NAME).removeprefix("HTTP_").replace("_", "-")


@lru_cache(maxsize=8)
def _policy(origins: tuple[str, ...]) -> str:
    """Allow scripts, styles, fonts and sockets from this host only, and nothing inline."""
    # Not every browser treats a socket of the same host as 'self'. The syntax does not allow IPv6 addresses.
    sockets = [origin.replace("http", "ws", 1) for origin in origins if "[" not in origin]
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "font-src 'self'",
            " ".join(("connect-src 'self'", *sockets)),
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )
