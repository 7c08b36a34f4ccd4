"""Match buffered events with open waits: the oldest event of a matching type goes to the oldest wait."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, KeysView
from dataclasses import dataclass
from typing import Protocol

from engine.replay.records.history import EventRecord, Page, StepRecord


class EventMatching:
    """Gives the events that were read to the open waits, and asks for more if a wait finds none."""

    def __init__(self, events: EventBuffer, waits: OpenWaits, ask: Callable[[], None]) -> None:
        self._events, self._waits, self._ask = events, waits, ask

    def offer_to(self, wait: Wait) -> None:
        """Give a new wait the oldest event that it accepts."""
        if not (self._events.is_offered and self._waits.are_known):
            self.offer_all()
            return
        for at, event in enumerate(self._events.events):  # older waits accept none of those that are left
            if _takes(wait, event):
                del self._events.events[at]
                self._give(event, wait)
                break
        self._read_on()

    def offer_all(self) -> None:
        """Give each buffered event to the oldest wait that accepts it; read on while a wait may find one."""
        # All or none: a wait that accepts a newer event may be due an older one, of a type that is not here.
        if self._waits.are_known:
            self._give_all()
            self._events.is_offered = True
        self._read_on()

    def read(self) -> None:
        """Read the next events that the open waits could accept."""
        if not self._events.is_reading:
            self._events.ask(frozenset(self._waits.types))
            self._ask()

    def expire_overdue(self, now_us: int) -> None:
        """Time out the waits whose deadline has passed, after events were read.

        If a deadline passed during the read, its timer has already fired, and only asked for that read.
        """
        for wait in self._waits:
            deadline = wait.record.wake_us
            if deadline is not None and deadline <= now_us:
                wait.expire()

    def _read_on(self) -> None:
        events, waits = self._events, self._waits
        if waits and (events.is_cut or events.is_stale or not waits.are_known):
            self.read()

    def _give_all(self) -> None:
        events, left = self._events.events, list[EventRecord]()
        for at, event in enumerate(events):
            if not self._waits:
                left += events[at:]
                break
            taker = self._waits.oldest(event.type, event.received_us)
            if taker is None:
                left.append(event)
            else:
                self._give(event, taker)
        events[:] = left

    def _give(self, event: EventRecord, wait: Wait) -> None:
        self._waits.remove(wait.record.seq)
        self._events.consumed.add(event.key)
        wait.receive(event)


def _takes(wait: Wait, event: EventRecord) -> bool:
    record = wait.record
    return event.type in record.event_types and (
        record.wake_us is None or event.received_us <= record.wake_us
    )


@dataclass(frozen=True, slots=True)
class Question:
    """Which events to read: those after this key and of these types; None means all types."""

    after: int
    types: frozenset[str] | None


class EventBuffer:
    """Holds every event of `types` (None: all) up to the key `until`, except those that were consumed.

    There may be ten thousand of a megabyte each, so they are read in pages, and only while a wait could take one. The
    first page has events of all types. If there are more, or if no wait takes them, only awaited types are read.
    """

    def __init__(self, first: Page) -> None:
        self.events = list(first.events)
        self.types: frozenset[str] | None = None
        self.until = first.events[-1].key if first.events else 0
        self.is_cut = first.is_cut
        self.is_stale = False  # more events came since
        self.is_reading = False  # the question is being answered
        self.is_offered = True  # to all waits: none takes what is left
        self.as_of_us = first.as_of_us
        self.consumed: set[int] = set()  # keys; a read may still find them buffered
        self.question = Question(0, None)

    def covers(self, wanted: frozenset[str]) -> bool:
        """Tell whether all events of these types up to `until` are here."""
        return self.types is None or wanted <= self.types

    def ask(self, wanted: frozenset[str]) -> None:
        """Decide what to read next for waits that found no event here."""
        takes_all = self.types is None and not self.is_cut and not self.events
        after = self.until if self.covers(wanted) else 0
        self.question = Question(after, None if takes_all else wanted)
        self.is_reading = True

    def take(self, page: Page, *, is_stale: bool) -> None:
        """Add the answer to the question. Events of other types are dropped: nothing waits for them."""
        self.is_reading = False
        after, types = self.question.after, self.question.types
        kept = [event for event in self.events if after and (types is None or event.type in types)]
        self.events = kept + [event for event in page.events if event.key not in self.consumed]
        self.is_offered = False
        self.types = types
        self.until = page.events[-1].key if page.events else after
        self.is_cut, self.is_stale, self.as_of_us = page.is_cut, is_stale, page.as_of_us


class Wait(Protocol):
    """A call that waits for an event."""

    record: StepRecord

    def receive(self, event: EventRecord) -> None:
        """Consume the event: it is the outcome."""

    def expire(self) -> None:
        """Time out, once it is certain that no event came before the deadline."""


class OpenWaits:
    """Waits by the numbers of their steps; the oldest has the lowest. Thousands may be open at once."""

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
