"""Tokens of forms: a form that is sent twice acts once."""

from __future__ import annotations

import uuid

from engine.values.identity import new_instance_id


def new_token() -> str:
    """Return a token for a form that is rendered now."""
    return new_instance_id()


def tag_of(token: str) -> str:
    """Return the tag of all that a form starts."""
    return f"many-{token[-12:]}"


def token_of(text: str) -> str:
    """Return the token of a submitted form, or a new one if it is invalid."""
    try:
        token = uuid.UUID(text)
    except ValueError:
        return new_instance_id()
    return str(token) if token.version == 7 else new_instance_id()
