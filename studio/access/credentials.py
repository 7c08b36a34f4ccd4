"""What a request brings to say who sent it: the cookie of a session, or a token."""

from __future__ import annotations

import hashlib
from typing import Any

from studio.access.cookies import Headers, session_key_of

BEARER = "bearer"
# Headers with which programs sign in; the project's own authentication may add to them.
HEADERS = {"authorization"}


def token_of(headers: Headers) -> str:
    """Return the token in raw headers; empty if there is none, or more than one."""
    given = [value for name, value in headers if name == b"authorization"]
    return bearer(given[0].decode("latin1")) if len(given) == 1 else ""


def bearer(authorization: str) -> str:
    """Return the token in the header `Authorization: Bearer …`; empty for anything else."""
    scheme, _, token = authorization.partition(" ")
    return token.strip(" \t") if scheme.lower() == BEARER else ""


def credentials_of(scope: Any) -> tuple[str, ...]:
    """Return keys of what a request brings, to remember that a view has accepted it."""
    session = session_key_of(scope)
    return (*([session] if session else []), *program_keys(scope["headers"]))


def program_keys(headers: Headers) -> tuple[str, ...]:
    """Return the keys of what a program signs in with."""
    given = [(name.decode("latin1").lower(), value) for name, value in headers]
    return tuple(key_of(name, value.decode("latin1")) for name, value in given if name in HEADERS and value)


def key_of(name: str, value: str) -> str:
    """Return the key of a header in memory, from which its value cannot be read."""
    return f"{name} {hashlib.sha256(value.encode(errors='replace')).hexdigest()}"
