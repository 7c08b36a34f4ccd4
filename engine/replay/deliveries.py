"""What the handler is given next: the order that every replay repeats."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.states import StepStatus

if TYPE_CHECKING:
    from engine.identity import StepIdentity
    from engine.replay.operation import Operation


class Deliveries:
    """The calls of a handler that are not delivered yet: those with a recorded outcome, those that are new, and those
    whose outcome came in live."""

    def __init__(self) -> None:
        self.entered: dict[StepIdentity, Operation] = {}  # the call of each identity that the others follow
        self.fresh: deque[Operation] = deque()  # called, not recorded, not started
        self.arrived: deque[Operation] = deque()  # with a live outcome
        self._recorded: list[tuple[int, int, Operation]] = []  # heap by delivery number, then by call
        self._calls = itertools.count()
        self._turnless: deque[Operation] = deque()  # atomic, complete, and no handler has been told of it

    def enter(self, operation: Operation) -> None:
        """Take in a call of the handler, in its place."""
        record = operation.record
        earlier = self.entered.get(record.identity)
        if earlier is not None and earlier.is_wanted:
            earlier.followers.append(operation)
            return
        self.entered[record.identity] = operation
        if not record.is_final:
            self.fresh.append(operation)
        elif record.delivery is not None:
            heapq.heappush(self._recorded, (record.delivery, next(self._calls), operation))
        elif record.status == StepStatus.COMPLETE:
            record.stands = True
            self._turnless.append(operation)

    def calls(self) -> Iterator[Operation]:
        """Give the calls of the handler, in their order, also those that are delivered."""
        for operation in self.entered.values():
            yield operation
            yield from operation.followers

    def take_recorded(self) -> Operation | None:
        return heapq.heappop(self._recorded)[2] if self._recorded else None

    def take_arrived(self) -> Operation | None:
        return self.arrived.popleft() if self.arrived else None

    def take_turnless(self) -> Operation | None:
        """Return one that an atomic body completed when its worker died, or its handler was not driven on."""
        while self._turnless:
            operation = self._turnless.popleft()
            if operation.is_wanted:
                return operation
        return None
