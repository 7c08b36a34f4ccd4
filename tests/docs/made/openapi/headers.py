"""The headers of answers."""

from __future__ import annotations

from typing import Any

HEADERS: dict[str, Any] = {
    "ETag": {
        "description": "The state of the instance. Send it as If-Match with an action on what you have seen.",
        "schema": {"type": "string", "pattern": '^"[^"]+"$'},
        "example": '"1.0.waiting.event."',
    },
    "Location": {
        "description": "The address of the new instance or bulk job.",
        "schema": {"type": "string", "format": "uri-reference"},
        "example": "/api/v1/workflows/ship-order/instances/order-1042",
    },
    "Idempotency-Replayed": {
        "description": "Sent if this is the recorded answer to an earlier request with the same Idempotency-Key.",
        "schema": {"type": "string", "const": "true"},
    },
    "RateLimit": {
        "description": "How many requests are left (r), and in how many seconds the count starts anew (t).",
        "schema": {"type": "string"},
        "example": '"default";r=598;t=42',
    },
    "RateLimit-Policy": {
        "description": "How many requests a token may send (q) within a number of seconds (w).",
        "schema": {"type": "string"},
        "example": '"default";q=600;w=60',
    },
    "Retry-After": {
        "description": "After how many seconds to try again.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[0-9]+$"},
        "example": "17",
    },
    "WWW-Authenticate": {
        "description": "How to authenticate.",
        "required": True,
        "schema": {"type": "string"},
        "example": 'Bearer realm="reprise", error="invalid_token"',
    },
}


def refs(*names: str) -> dict[str, Any]:
    """Return references to headers."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


ALWAYS = refs("RateLimit", "RateLimit-Policy")
