"""Refusals as JSON for programs: problem details (RFC 9457)."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

CONTENT_TYPE = "application/problem+json"
URN = "urn:reprise:problem:"
PROGRAMS = "/api/v1/"  # in the path of what only programs ask for

# Of requests that are refused before the API sees them.
CODES = {
    400: "unreadable_request",
    403: "host_not_allowed",
    408: "request_timeout",
    413: "body_too_large",
    415: "content_not_accepted",
    431: "headers_too_large",
    500: "internal_error",
    503: "too_many_waiting",
}


def problem_of(status: int, code: str, detail: str) -> dict[str, Any]:
    """Return a refusal as a document."""
    return {
        "type": URN + code,
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
    }


def written_for(path: str, status: int, text: str) -> tuple[bytes, bytes]:
    """Return the content type and the body of an early refusal: a problem for programs, else the text."""
    if PROGRAMS not in path:
        return b"text/plain; charset=utf-8", f"{text}\n".encode()
    document = problem_of(status, CODES.get(status, "refused"), text)
    return CONTENT_TYPE.encode(), json.dumps(document).encode()
