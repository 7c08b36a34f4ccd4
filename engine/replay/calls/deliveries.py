"""What the handler gets next, in the order that every replay repeats."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterator

from engine.replay.calls.call import Call
from engine.values.identity import StepIdentity
from engine.values.states import StepStatus


class Deliveries:
    """The undelivered calls of a handler: with a recorded outcome, new, or with a live outcome."""

    def __init__(self) -> None:
        self.entered: dict[StepIdentity, Call] = {}  # the first call of each identity, which others follow
        self.fresh: deque[Call] = deque()  # called, not recorded, not started
        self.arrived: deque[Call] = deque()  # with a live outcome
        self._recorded: list[tuple[int, int, Call]] = []  # heap by delivery number, then by call
        self._calls = itertools.count()
        self._unnumbered: deque[Call] = deque()  # ended, and not delivered to any handler

    def enter(self, call: Call) -> None:
        """Add a call of the handler where it belongs."""
        record = call.record
        earlier = self.entered.get(record.identity)
        if earlier is not None and earlier.is_wanted:
            earlier.followers.append(call)
            return
        self.entered[record.identity] = call
        if not record.is_final:
            self.fresh.append(call)
        elif record.delivery is not None:
            heapq.heappush(self._recorded, (record.delivery, next(self._calls), call))
        elif record.status != StepStatus.CANCELLED:
            record.stands = True
            self._unnumbered.append(call)

    def calls(self) -> Iterator[Call]:
        """Yield the calls of the handler in their order, including those that are delivered."""
        for call in self.entered.values():
            yield call
            yield from call.followers

    def take_fresh(self) -> list[Call]:
        """Return the calls that have not started; they never will."""
        taken = list(self.fresh)
        self.fresh.clear()
        return taken

    def take_recorded(self) -> Call | None:
        return heapq.heappop(self._recorded)[2] if self._recorded else None

    def take_arrived(self) -> Call | None:
        return self.arrived.popleft() if self.arrived else None

    def take_unnumbered(self) -> Call | None:
        """Return a call that an atomic body completed when its worker died or its handler was not driven, or that a
        person decided while it was paused."""
        while self._unnumbered:
            call = self._unnumbered.popleft()
            if call.is_wanted:
                return call
        return None
