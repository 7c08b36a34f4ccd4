"""What holds for what has gone wrong and is to be told."""

from __future__ import annotations

from engine.invariants.invariant import Invariant

INVARIANTS = (
    Invariant(
        "L1",
        "failures-are-logged",
        "A failure is in the log within the grace; its row waits for slow receivers only.",
        """
        SELECT coalesce(instance_key, 0), kind FROM engine_notice
        WHERE NOT is_logged AND at < clock_timestamp() - %(grace)s * interval '1 second'
        """,
    ),
)
