"""Which workflows a user may see, as the engine's searches take them."""

from __future__ import annotations

from typing import Any

from engine.status.search import workflow_names
from studio.access.permissions import sees_all, visible


def workflows_of_user(user: Any) -> list[str] | None:
    """Return the workflows that a user may see; None if that is all."""
    return None if sees_all(user) else visible(user, workflow_names())
