"""The token of a form: what it does is done once, also where it is sent twice."""

from __future__ import annotations

import uuid

from engine.values.identity import new_instance_id


def new_token() -> str:
    """Make the token of a form that is drawn now."""
    return new_instance_id()


def token_of(text: str) -> str:
    """Read the token that a form brings back; a new one in place of nonsense."""
    try:
        token = uuid.UUID(text)
    except ValueError:
        return new_instance_id()
    return str(token) if token.version == 7 else new_instance_id()
