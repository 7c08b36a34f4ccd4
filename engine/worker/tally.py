"""What a shift counts in its memory for charts: how long instances waited to start, and how attempts at steps went.

Nothing is written with the change itself: a row for each step would cost a sixth of the throughput. The shift writes
the sums every few seconds, and when it ends. What a kill loses are seconds of a chart; starts and ends of instances
are counted in the database (`migrations/counters/`).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable

from engine.replay.host import Claimed
from engine.replay.records.history import AttemptRecord, History
from engine.values.states import AttemptPhase, AttemptStatus

MINUTE_US = 60_000_000
RATIO = math.log(1.2)  # as `engine_duration_bucket`
LAST_BUCKET = 132
UNTIMED = -1
AHEAD_US = 200_000  # an instance may be claimed this long before it is due


class Tally:
    """Sums by workflow, minute, what happened, and how long it took: as few rows as there are different ones."""

    def __init__(self) -> None:
        self._amounts: Counter[tuple[str, int, str, int]] = Counter()

    def claimed(self, claimed: Claimed, history: History) -> None:
        """Count it if this is its first run: then it was started by this claim, and after it was due."""
        if not history.steps and claimed.started_us >= claimed.due_us - AHEAD_US:
            waited_us = claimed.started_us - claimed.due_us
            self._add(claimed.workflow, claimed.started_us, "began", _bucket(waited_us))

    def written(self, workflow: str, attempts: Iterable[AttemptRecord]) -> None:
        """Count the attempts at steps that have ended, each when its end is written."""
        for one in attempts:
            if one.finished_us is None or one.phase != AttemptPhase.DO:
                continue
            if one.status == AttemptStatus.COMPLETE:
                self._add(workflow, one.finished_us, "succeeded", _bucket(one.finished_us - one.started_us))
            if one.number > 1:
                self._add(workflow, one.finished_us, "retried", UNTIMED)

    def _add(self, workflow: str, at_us: int, what: str, bucket: int) -> None:
        self._amounts[workflow, at_us - at_us % MINUTE_US, what, bucket] += 1

    def take(self) -> str | None:
        """Return the sums as JSON rows and begin anew; None if there are none."""
        amounts, self._amounts = self._amounts, Counter()
        names = ("workflow", "at_us", "what", "bucket", "amount")
        rows = [dict(zip(names, (*key, amount), strict=True)) for key, amount in amounts.items()]
        return json.dumps(rows) if rows else None


def _bucket(duration_us: int) -> int:
    return min(LAST_BUCKET, int(math.log(max(duration_us / 1000, 1.0)) / RATIO))
