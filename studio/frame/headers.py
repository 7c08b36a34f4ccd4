"""The headers of the Studio's own pages, whatever the site around them sets."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote, urlsplit

from django.conf import settings
from django.http.response import HttpResponseBase
from django.templatetags.static import static

from engine.configuration import setting

FOLDER = "studio/"  # of static files
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
    origins = tuple(setting("ORIGINS") or ())
    response.headers.setdefault("Content-Security-Policy", _policy(origins, _foreign_files()))
    if not is_stored:
        # Pages hold parameters and results: no copy of them stays in the browser or on the way. Django's own cache of
        # pages respects `private` only.
        response.headers.setdefault("Cache-Control", "no-store, private")


def csrf_header() -> str:
    """Return the name of the request header that carries the CSRF token."""
    return str(settings.CSRF_HEADER_NAME).removeprefix("HTTP_").replace("_", "-")


def _foreign_files() -> str:
    """Return the Studio's folder of static files as a source, if another host serves them; else nothing.

    Not the whole host: on that of an object store, files next to ours may be anybody's.
    """
    try:
        address = urlsplit(static(f"{FOLDER}frame/base.css"))
    except ValueError:  # not in the manifest of the storage: `collectstatic` has not run
        return ""
    # The syntax does not allow IPv6 addresses.
    if not address.netloc or "[" in address.netloc:
        return ""
    before, found, _ = address.path.rpartition(f"/{FOLDER}")
    folder = quote(f"{before}{found}" if found else "/", safe="/%~")
    return f" {address.scheme}://{address.netloc}{folder}" if address.scheme else f" {address.netloc}{folder}"


@lru_cache(maxsize=8)
def _policy(origins: tuple[str, ...], files: str) -> str:
    """Allow scripts, styles, fonts and sockets from this host and the Studio's own `files`, and nothing inline."""
    # Not every browser treats a socket of the same host as 'self'. The syntax does not allow IPv6 addresses.
    sockets = [origin.replace("http", "ws", 1) for origin in origins if "[" not in origin]
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self'{files}",
            f"style-src 'self'{files}",
            f"img-src 'self' data:{files}",
            f"font-src 'self'{files}",
            " ".join(("connect-src 'self'", *sockets)),
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )
