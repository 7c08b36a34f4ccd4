"""Read the Studio's cookies from raw headers, as Django would."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.http import HttpResponse, parse_cookie

Headers = Iterable[tuple[bytes, bytes]]


def session_key_of(scope: Any) -> str:
    """Return the session key that a request or a handshake brings; empty if there is none."""
    return cookies_of(scope["headers"]).get(settings.SESSION_COOKIE_NAME, "")


def broken_cookie(headers: Headers) -> str:
    """Return the name of a session or CSRF cookie that Django cannot have set; empty if there is none.

    Django decodes octal escapes in cookies, so a value can hold any character, and PostgreSQL refuses NUL.
    """
    found = cookies_of(headers)
    names = (settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME)
    return next((name for name in names if not _is_plain(found.get(name, ""))), "")


def deletion_of(name: str) -> str:
    """Return the Set-Cookie header that deletes the session or CSRF cookie.

    Browsers ignore it unless path, domain and Secure are those with which Django set the cookie.
    """
    kind = "SESSION" if name == settings.SESSION_COOKIE_NAME else "CSRF"
    response = HttpResponse()
    response.set_cookie(
        name,
        max_age=0,
        path=getattr(settings, f"{kind}_COOKIE_PATH"),
        domain=getattr(settings, f"{kind}_COOKIE_DOMAIN"),
        secure=getattr(settings, f"{kind}_COOKIE_SECURE"),
        httponly=getattr(settings, f"{kind}_COOKIE_HTTPONLY"),
        samesite=getattr(settings, f"{kind}_COOKIE_SAMESITE"),
    )
    return response.cookies[name].OutputString()


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def cookies_of(headers: Headers) -> dict[str, str]:
    """Return all cookies that raw headers bring."""
    given = [value.decode("latin1") for name, value in headers if name == b"cookie"]
    return parse_cookie(",".join(given))
