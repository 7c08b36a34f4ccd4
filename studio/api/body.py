"""Read the body of a request with the engine's own JSON reader, so that it accepts what all other entrances do."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, UnreadablePostError
from ninja.parser import Parser

from engine.configuration import setting
from engine.values.serialization import MAX_DEPTH, InvalidJSON, read_json
from studio.api.problems import ProblemError, of_engine

JSON_TYPES = ("application/json",)
# There is more around a value. How deep that is itself, the engine checks.
DEPTH = 2 * MAX_DEPTH
EMPTY = b"{}"  # what an empty body stands for


class EngineParser(Parser):
    """The parser of the API."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        """Return the object in the body, or an empty one for an empty body. Raises ProblemError."""
        raw = body_of(request)
        if raw is EMPTY:
            return {}
        if request.content_type not in JSON_TYPES:
            detail = f"Send JSON with the header Content-Type: application/json, not {request.content_type or 'none'}."
            raise ProblemError(415, "not_json", detail)
        try:
            value = read_json(raw, limit=setting("MAX_BODY_BYTES"), what="body", depth=DEPTH)
        except InvalidJSON as error:
            raise of_engine(error) from None
        if not isinstance(value, dict):
            raise ProblemError(422, "not_an_object", "The body must be a JSON object.")
        return value


def body_of(request: HttpRequest) -> bytes:
    """Return the body, up to MAX_BODY_BYTES, whatever the site's own limit is. Raises ProblemError.

    Under daphne, a larger body was refused before it was received. A body that is empty is an empty object, so that a
    lacking field is reported by its name.
    """
    if hasattr(request, "_body"):  # also if the project's authentication has read it
        request._body = request.body if request.body.strip() else EMPTY
        return request._body
    encoding = request.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        detail = "Send the body without Content-Encoding."  # a small one may unpack to gigabytes
        raise ProblemError(415, "encoded_body", detail)
    body = read_whole(request, setting("MAX_BODY_BYTES"))
    request._body = body if body.strip() else EMPTY
    return request._body


def read_whole(request: HttpRequest, limit: int) -> bytes:
    """Read the raw body, up to so many bytes. Raises ProblemError."""
    try:
        body = request.read(limit + 1)
    except RequestDataTooBig:
        body = b" " * (limit + 1)
    except UnreadablePostError:
        raise ProblemError(400, "incomplete_body", "The body ended too early.") from None
    if len(body) > limit:
        raise ProblemError(413, "body_too_large", f"The body may have {limit} bytes at most.")
    return body
