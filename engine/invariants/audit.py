"""Invariants between instances and the audit trail."""

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
)
