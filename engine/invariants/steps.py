"""Invariants of steps and their attempts."""

from __future__ import annotations

from engine.invariants.invariant import Invariant

INVARIANTS = (
    Invariant(
        "I1",
        "no-more-workers-than-claims",
        "The number of workers that attempted steps of an instance does not exceed its number of claims.",
        """
        SELECT i.key, format('%%s workers, %%s claims', count(DISTINCT a.worker), i.fence)
        FROM engine_attempt a JOIN engine_instance i ON i.key = a.instance_id
        GROUP BY i.key, i.fence HAVING count(DISTINCT a.worker) > i.fence
        """,
    ),
    Invariant(
        "I1",
        "attempts-one-at-a-time",
        "An attempt at a step starts only after the previous attempt has ended.",
        """
        SELECT a.instance_id, format('step %%s attempt %%s', a.step_seq, later.number)
        FROM engine_attempt a JOIN engine_attempt later
            ON later.instance_id = a.instance_id AND later.generation = a.generation
            AND later.step_seq = a.step_seq AND later.phase = a.phase AND later.number = a.number + 1
        WHERE a.finished_at IS NULL OR later.started_at < a.finished_at - %(skew)s * interval '1 second'
        """,
    ),
    Invariant(
        "I2",
        "nothing-after-success",
        "A completed step is never attempted again.",
        """
        SELECT a.instance_id, format('step %%s attempt %%s', a.step_seq, a.number)
        FROM engine_attempt a JOIN engine_attempt later
            ON later.instance_id = a.instance_id AND later.generation = a.generation
            AND later.step_seq = a.step_seq AND later.phase = a.phase AND later.number > a.number
        WHERE a.status = 'complete'
        """,
    ),
    Invariant(
        "I3",
        "attempts-have-steps",
        "Every attempt belongs to a step with a body.",
        """
        SELECT a.instance_id, format('step %%s attempt %%s', a.step_seq, a.number)
        FROM engine_attempt a LEFT JOIN engine_step s
            ON s.instance_id = a.instance_id AND s.generation = a.generation AND s.seq = a.step_seq
        WHERE s.seq IS NULL OR s.kind <> 'do'
        """,
    ),
    Invariant(
        "I4",
        "attempts-without-gaps",
        "In the generation in which a step ran, its attempts are numbered from 1 to the recorded number of "
        "attempts.",
        """
        SELECT s.instance_id, format('step %%s says %%s, has %%s', s.seq, s.attempts, count(a.number))
        FROM engine_step s LEFT JOIN engine_attempt a
            ON a.instance_id = s.instance_id AND a.generation = s.generation AND a.step_seq = s.seq
            AND a.phase = 'do'
        WHERE s.kind = 'do' AND s.kept_from IS NULL
        GROUP BY s.instance_id, s.generation, s.seq
        HAVING count(a.number) <> s.attempts OR coalesce(max(a.number), 0) <> s.attempts
            OR coalesce(min(a.number), 1) <> 1
        """,
    ),
    Invariant(
        "I4",
        "losses-are-counted",
        "The number of lost attempts recorded on a step is correct.",
        """
        SELECT s.instance_id, format('step %%s says %%s, has %%s', s.seq, s.lost, count(a.number))
        FROM engine_step s LEFT JOIN engine_attempt a
            ON a.instance_id = s.instance_id AND a.generation = s.generation AND a.step_seq = s.seq
            AND a.phase = 'do' AND a.status = 'lost'
        WHERE s.kind = 'do' AND s.kept_from IS NULL
        GROUP BY s.instance_id, s.generation, s.seq
        HAVING count(a.number) <> s.lost
        """,
    ),
    Invariant(
        "I4",
        "budgets-are-kept",
        "A step fails at most max_attempts times, and loses its worker at most 3 times while running alone, since a "
        "person last gave it new attempts.",
        """
        SELECT s.instance_id, format('step %%s', s.seq)
        FROM engine_step s JOIN engine_attempt a
            ON a.instance_id = s.instance_id AND a.generation = s.generation AND a.step_seq = s.seq
            AND a.phase = 'do' AND a.number > coalesce((s.options ->> 'retried_after')::integer, 0)
        WHERE s.kind = 'do'
        GROUP BY s.instance_id, s.generation, s.seq
        HAVING count(*) FILTER (WHERE a.status IN ('errored', 'timed_out'))
                > (s.options ->> 'max_attempts')::integer
            OR count(*) FILTER (WHERE a.status = 'lost' AND a.quarantined) > 3
        """,
    ),
    Invariant(
        "I5",
        "steps-end-like-their-last-attempt",
        "A step with a body is complete if and only if its last attempt is, or a person has skipped it. If the step "
        "failed, its last attempt failed or was lost.",
        """
        SELECT s.instance_id, format('step %%s is %%s, its last attempt %%s', s.seq, s.status, a.status)
        FROM engine_step s LEFT JOIN engine_attempt a
            ON a.instance_id = s.instance_id AND a.generation = s.generation AND a.step_seq = s.seq
            AND a.phase = 'do' AND a.number = s.attempts
        WHERE s.kind = 'do' AND s.kept_from IS NULL
          AND s.options -> 'decision' ->> 'outcome' IS DISTINCT FROM 'skipped' AND (
            (s.status = 'complete') <> (a.status IS NOT DISTINCT FROM 'complete')
            OR s.status = 'errored' AND coalesce(a.status, '') NOT IN ('errored', 'timed_out', 'lost')
        )
        """,
    ),
    Invariant(
        "I5",
        "outcomes-are-recorded",
        "A finished step has the outcome that its status implies. An open step has no outcome, but its last "
        "error while it waits for a person's decision.",
        """
        SELECT instance_id, format('step %%s is %%s', seq, status) FROM engine_step
        WHERE (output IS NOT NULL) <> (status = 'complete' AND kind <> 'sleep')
           OR (error IS NOT NULL) <> (status = 'errored') AND NOT (
            kind = 'do' AND status = 'waiting' AND wake_at IS NULL AND options ->> 'on_exhausted' = 'pause'
        )
           OR (finished_at IS NULL) <> (status IN ('running', 'waiting'))
        """,
    ),
    Invariant(
        "I5",
        "outcomes-are-delivered",
        "A step has a delivery number if and only if its outcome reaches the handler. An atomic step gets "
        "the number after its completion, or none if the handler ended first; so does a step that a person has "
        "skipped or failed.",
        """
        SELECT instance_id, format('step %%s is %%s, delivery %%s', seq, status, delivery) FROM engine_step
        WHERE (delivery IS NOT NULL) <> (status IN ('complete', 'errored')) AND parent = 0
          AND NOT (delivery IS NULL AND status = 'complete' AND options ->> 'atomic' IS NOT DISTINCT FROM 'true')
          AND NOT (delivery IS NULL AND options -> 'decision' IS NOT NULL)
        """,
    ),
    Invariant(
        "I5",
        "inner-steps-end-first",
        "A step inside a body or a map ends before the enclosing step.",
        """
        SELECT s.instance_id, format('step %%s inside step %%s', s.seq, s.parent)
        FROM engine_step s LEFT JOIN engine_step around
            ON around.instance_id = s.instance_id AND around.generation = s.generation AND around.seq = s.parent
        WHERE s.parent <> 0 AND s.kind = 'do' AND (
            around.seq IS NULL OR around.kind NOT IN ('do', 'map') OR around.finished_at IS NOT NULL
            AND coalesce(s.finished_at, 'infinity') > around.finished_at + %(skew)s * interval '1 second'
        )
        """,
    ),
    Invariant(
        "I13",
        "one-outcome-per-delivery",
        "No two outcomes of a generation have the same delivery number.",
        """
        SELECT instance_id, format('delivery %%s', delivery) FROM engine_step WHERE delivery IS NOT NULL
        GROUP BY instance_id, generation, delivery HAVING count(*) > 1
        """,
    ),
    Invariant(
        "I13",
        "outcomes-in-time-order",
        "No outcome is older than those delivered before it, except that of an atomic step, which is "
        "recorded with its own commit, and what a person has decided while the instance was paused.",
        """
        SELECT instance_id, format('step %%s, delivery %%s', seq, delivery)
        FROM (
            SELECT instance_id, seq, delivery, finished_at, options, lag(finished_at) OVER (
                PARTITION BY instance_id, generation ORDER BY delivery
            ) AS before
            FROM engine_step WHERE delivery IS NOT NULL
        ) AS outcome
        WHERE finished_at < before - %(skew)s * interval '1 second'
          AND options ->> 'atomic' IS DISTINCT FROM 'true' AND options -> 'decision' IS NULL
        """,
    ),
    Invariant(
        "I13",
        "generations-exist",
        "Every step belongs to a generation that has started, and is numbered from 1.",
        """
        SELECT i.key, format('step %%s of generation %%s', s.seq, s.generation)
        FROM engine_step s JOIN engine_instance i ON i.key = s.instance_id
        WHERE s.generation NOT BETWEEN 1 AND i.generation OR s.seq < 1
        """,
    ),
)
