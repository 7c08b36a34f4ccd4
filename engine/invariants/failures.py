"""Invariants of groups of failures."""

from __future__ import annotations

from engine.invariants.invariant import Invariant

# As `engine.values.fingerprint` computes them.
_DIGITS = "left(encode(sha256(convert_to(concat_ws(chr(31), {}), 'UTF8')), 'hex'), 16)"
_SHARED = "f.step, f.phase, f.type, f.message, f.frame"
# The latest hour of a group may still lack what was written late.
_HOURS = """
    SELECT fingerprint, date_trunc('hour', failed_at, 'UTC') AS hour, count(*) AS found
    FROM engine_attempt WHERE fingerprint IS NOT NULL GROUP BY 1, 2
"""

INVARIANTS = (
    Invariant(
        "I18",
        "failures-have-groups",
        "Every fingerprint of an attempt or an instance is that of a group of its workflow.",
        """
        SELECT i.key, format('%%s of the instance', i.fingerprint) FROM engine_instance i
        WHERE i.fingerprint IS NOT NULL AND NOT EXISTS (
            SELECT FROM engine_failure f WHERE f.fingerprint = i.fingerprint AND f.workflow = i.workflow
        )
        UNION ALL
        SELECT a.instance_id, format('%%s of attempt %%s of step %%s', a.fingerprint, a.number, a.step_seq)
        FROM engine_attempt a JOIN engine_instance i ON i.key = a.instance_id
        WHERE a.fingerprint IS NOT NULL AND NOT EXISTS (
            SELECT FROM engine_failure f WHERE f.fingerprint = a.fingerprint AND f.workflow = i.workflow
        )
        """,
    ),
    Invariant(
        "I18",
        "failed-attempts-belong-to-their-group",
        "An attempt with a fingerprint failed at its end, in the step and phase of its group, and with that error.",
        """
        SELECT a.instance_id, format('attempt %%s of step %%s is %%s', a.number, a.step_seq, a.status)
        FROM engine_attempt a
        LEFT JOIN engine_failure f ON f.fingerprint = a.fingerprint
        LEFT JOIN engine_step s
            ON s.instance_id = a.instance_id AND s.generation = a.generation AND s.seq = a.step_seq
        WHERE (a.fingerprint IS NULL) <> (a.failed_at IS NULL) OR a.fingerprint IS NOT NULL AND (
            a.status NOT IN ('errored', 'timed_out', 'lost') OR a.failed_at <> a.finished_at
            OR (f.step, f.phase) <> (s.name, a.phase)
            OR f.type <> CASE WHEN a.status = 'lost' THEN 'WorkerLostError' ELSE left(a.error ->> 'type', 256) END
        )
        """,
    ),
    Invariant(
        "I18",
        "fingerprints-are-computed",
        "The fingerprint of a group follows from its workflow, step, phase, error and frame, and its kin from all but "
        "the workflow.",
        f"""
        SELECT 0::bigint, f.fingerprint FROM engine_failure f
        WHERE (f.fingerprint, f.kin)
            <> ({_DIGITS.format(f"f.workflow, {_SHARED}")}, {_DIGITS.format(_SHARED)})
        """,
    ),
    Invariant(
        "I18",
        "failures-are-counted",
        "The count of an hour that is over is at least the number of failed attempts that are left of it.",
        f"""
        SELECT 0::bigint, format('%%s at %%s: %%s of %%s', h.fingerprint, h.hour, coalesce(c.attempts, 0), h.found)
        FROM ({_HOURS}) AS h JOIN engine_failure f USING (fingerprint)
        LEFT JOIN engine_failure_count c USING (fingerprint, hour)
        WHERE h.hour < f.counted_to - interval '1 hour' AND h.hour >= f.first_seen
          AND h.hour >= clock_timestamp() - interval '34 days' AND coalesce(c.attempts, 0) < h.found
        UNION ALL
        SELECT 0::bigint, format('%%s at %%s: %%s', c.fingerprint, c.hour, c.attempts)
        FROM engine_failure_count c LEFT JOIN engine_failure f USING (fingerprint)
        WHERE f.fingerprint IS NULL OR c.attempts < 1 OR c.hour >= f.counted_to
           OR c.hour <> date_trunc('hour', c.hour, 'UTC')
        """,
    ),
)
