"""The deadlines of an instance's open steps, and of the instance itself."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

from engine.replay.calls.call import Call

DEADLINE = 0  # in place of a step's number: the workflow's own timeout


class Timers:
    """A heap of (time, step). An entry counts only while its step is open and still waits until that time."""

    def __init__(self, open_steps: Mapping[int, Call]) -> None:
        self._open = open_steps
        self._heap: list[tuple[int, int]] = []

    def add(self, when_us: int, seq: int) -> None:
        heapq.heappush(self._heap, (when_us, seq))

    def due(self, now_us: int) -> Iterator[int]:
        """Remove and yield the steps that are due, the earliest first; DEADLINE means the instance."""
        while self._heap and self._heap[0][0] <= now_us:
            when_us, seq = heapq.heappop(self._heap)
            if self._counts(when_us, seq):
                yield seq

    def next(self) -> tuple[int, int] | None:
        """Return the time of the next deadline, and the step that it belongs to."""
        while self._heap:
            if self._counts(*self._heap[0]):
                return self._heap[0]
            heapq.heappop(self._heap)
        return None

    def next_step(self) -> Call | None:
        """Return the call with the next deadline, except the instance's own."""
        for when_us, seq in sorted(self._heap):
            if seq != DEADLINE and self._counts(when_us, seq):
                return self._open[seq]
        return None

    def _counts(self, when_us: int, seq: int) -> bool:
        return seq == DEADLINE or (seq in self._open and self._open[seq].record.wake_us == when_us)
