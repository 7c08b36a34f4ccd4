"""The open waits of an instance for events, by type. Thousands may be open at once."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, KeysView
from typing import Protocol

from engine.replay.records.history import EventRecord, StepRecord


class Wait(Protocol):
    """A call that waits for an event."""

    record: StepRecord

    def receive(self, event: EventRecord) -> None:
        """Consume the event: it is the outcome."""

    def expire(self) -> None:
        """Time out, once it is certain that no event came before the deadline."""


class OpenWaits:
    """Waits by the numbers of their steps; the oldest has the lowest."""

    def __init__(self) -> None:
        self._by_seq: dict[int, Wait] = {}
        self._by_type: dict[str, list[int]] = {}  # in order
        self._known: frozenset[str] | None = None
        self._unknown: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._by_seq)

    def __contains__(self, seq: int) -> bool:
        return seq in self._by_seq

    def __iter__(self) -> Iterator[Wait]:
        """Yield all waits, the oldest first."""
        return iter([self._by_seq[seq] for seq in sorted(self._by_seq)])

    @property
    def types(self) -> KeysView[str]:
        """The types that are waited for."""
        return self._by_type.keys()

    @property
    def are_known(self) -> bool:
        """Tell whether the events of all of them have been read."""
        return not self._unknown

    def know(self, types: frozenset[str] | None) -> None:
        """Note the types whose events have been read; None means all."""
        self._known = types
        self._unknown = set() if types is None else self.types - types

    def add(self, operation: Wait) -> None:
        seq = operation.record.seq
        self._by_seq[seq] = operation
        for one in set(operation.record.event_types):
            insort(self._by_type.setdefault(one, []), seq)
            if self._known is not None and one not in self._known:
                self._unknown.add(one)

    def remove(self, seq: int) -> None:
        """Remove a wait that is over, if it is open."""
        operation = self._by_seq.pop(seq, None)
        for one in () if operation is None else set(operation.record.event_types):
            waiting = self._by_type[one]
            del waiting[bisect_left(waiting, seq)]
            if not waiting:
                del self._by_type[one]
                self._unknown.discard(one)

    def oldest(self, type: str, received_us: int) -> Wait | None:
        """Return the oldest wait that accepts an event of this type, received at this time."""
        for seq in self._by_type.get(type, ()):
            deadline = self._by_seq[seq].record.wake_us
            if deadline is None or received_us <= deadline:
                return self._by_seq[seq]
        return None
