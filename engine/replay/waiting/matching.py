"""Match buffered events with waits: the oldest event of a matching type goes to the oldest wait."""

from __future__ import annotations

from collections.abc import Callable

from engine.replay.records.history import EventRecord
from engine.replay.waiting.event_buffer import EventBuffer
from engine.replay.waiting.open_waits import OpenWaits, Wait


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
