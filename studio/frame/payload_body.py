"""Read forms that are larger than a site lets forms be.

Params of 1 MiB need up to 3 MiB in a form; DATA_UPLOAD_MAX_MEMORY_SIZE is 2.5 MiB unless the site says otherwise.
"""

from __future__ import annotations

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, UnreadablePostError

from engine.configuration import setting


def read_payload(request: HttpRequest) -> None:
    """Read the form of a signed-in user, up to MAX_BODY_BYTES. Raises RequestDataTooBig.

    Django then parses what was read. All other forms are left to the limits of the site. Under daphne, a larger body
    was refused before it was received.
    """
    is_signed_in = getattr(getattr(request, "user", None), "is_authenticated", False)
    if request.method != "POST" or not is_signed_in or getattr(request, "_read_started", False):
        return
    limit = setting("MAX_BODY_BYTES")
    try:
        body = request.read(limit + 1)
    except UnreadablePostError:  # the browser is gone: Django takes the form for empty
        return
    if len(body) > limit:
        raise RequestDataTooBig(f"The form has more than {limit} bytes.")
    request._body = body
