"""The counts in the navigation, which every page shows."""

from __future__ import annotations

from typing import Any

from studio.approvals import live as approvals
from studio.errors import live as errors
from studio.frame.pieces import Piece


def count_pieces(user: Any) -> dict[str, Piece]:
    """Render the counts for a user: requests that wait for them, and open errors."""
    return {**approvals.count_piece(user), **errors.count_piece(user)}
