"""The buffered events of an instance that its cycle has read.

There may be ten thousand of a megabyte each, so they are read in pages, and only while a wait could take one. The first
page has events of all types. If there are more, or if no wait takes them, only awaited types are read.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.replay.records.history import Page


@dataclass(frozen=True, slots=True)
class Question:
    """Which events to read: those after this key and of these types; None means all types."""

    after: int
    types: frozenset[str] | None


class EventBuffer:
    """Holds every event of `types` (None: all) up to the key `until`, except those that were consumed."""

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
