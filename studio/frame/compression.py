"""Compress pages and fragments, whatever middleware the site has.

Django's own middleware does it: it varies the length of each answer at random, so that nobody can learn the secrets on
a page from how well it compresses (BREACH), and leaves alone what is compressed already.
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

TYPES = (
    *("text/html", "application/json", "text/plain", "application/problem+json"),
    *("text/javascript", "text/css"),
)
SMALLEST = 1_000  # bytes; below, an answer fits into one packet anyway
LARGEST = 4_000_000  # bytes; above, compression would keep a thread busy for long


def compress(request: HttpRequest, response: HttpResponseBase) -> None:
    """Compress the body in place, if the client accepts it and it is worth the time.

    Streams stay as they are, and what has an ETag: compressed, it would need a weak one, which `If-Match` never takes.
    """
    if not isinstance(response, HttpResponse) or response.streaming or "ETag" in response.headers:
        return
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind in TYPES and SMALLEST <= len(response.content) <= LARGEST:
        _middleware.process_response(request, response)


_middleware = GZipMiddleware(lambda request: HttpResponse())
