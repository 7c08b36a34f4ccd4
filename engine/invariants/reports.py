"""Invariants of what is reported about instances: the audit trail, and notices of failures."""

from __future__ import annotations

from engine.invariants.invariant import Invariant

INVARIANTS = (
    Invariant(
        "I16",
        "terminations-are-audited",
        "Every terminated instance has a row in the audit trail, unless it aborted itself.",
        """
        SELECT i.key, 'no row' FROM engine_instance i
        WHERE i.status = 'terminated' AND i.error IS NULL AND NOT EXISTS (
            SELECT FROM engine_audit a
            WHERE a.instance_key = i.key AND a.verb = 'terminate' AND a.outcome = 'done'
        )
        """,
    ),
    Invariant(
        "I16",
        "pauses-are-audited",
        "Every paused instance has a row in the audit trail, unless the engine paused it and recorded the "
        "reason.",
        """
        SELECT i.key, 'no row' FROM engine_instance i
        WHERE i.status = 'paused' AND i.pause_reason IS NULL AND NOT EXISTS (
            SELECT FROM engine_audit a
            WHERE a.instance_key = i.key AND a.verb = 'pause' AND a.outcome = 'done'
        )
        """,
    ),
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
