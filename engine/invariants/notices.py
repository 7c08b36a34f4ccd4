"""Invariants of notices of failures."""

from __future__ import annotations

from engine.invariants.invariant import Invariant

INVARIANTS = (
    Invariant(
        "L1",
        "failures-are-logged",
        "Every failure is logged within the grace period; its row may then stay only for slow receivers.",
        """
        SELECT coalesce(instance_key, 0), kind FROM engine_notice
        WHERE NOT is_logged AND at < clock_timestamp() - %(grace)s * interval '1 second'
        """,
    ),
)
