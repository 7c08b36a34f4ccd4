"""A client: it starts its share of the instances when they are due and does to each what its story says.

Whatever is not accepted is tried again until it is; the ledger gets what was accepted, and nothing else. While more is
due than the machine gets done, nothing new is started; what comes too late for the load is left out, and said so.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from tests.chaos.doors import Door, EndedError, NotAcceptedError
from tests.chaos.stories import Deed, Story
from tests.process import ledger

TRY_AGAIN = 0.1
LOOK_AGAIN = 0.25
LATE = 1.0


def flag() -> Path:
    """Return the file that is there while nothing new shall be started."""
    return ledger.path().with_name("held-back")


def is_held_back() -> bool:
    return flag().exists()


class Customer:
    def __init__(self, door: Door, mine: list[Story], began: float, load: float) -> None:
        self.door = door
        self._ends_at = began + load
        self._order = count()
        self._due: list[tuple[float, int, Story, Deed | None]] = []
        for story in mine:
            self._plan(began + story.at, story, None)

    def run(self) -> None:
        """Return when all stories are told, as far as a client tells them."""
        while self._due:
            at, _, story, deed = heapq.heappop(self._due)
            time.sleep(max(0.0, at - time.monotonic()))
            if deed is None:
                self._start(story)
                continue
            try:
                self._do(story, deed)
            except EndedError:
                ledger.write("too late", instance=story.id, step=deed.key)

    def _plan(self, at: float, story: Story, deed: Deed | None) -> None:
        heapq.heappush(self._due, (at, next(self._order), story, deed))

    def _start(self, story: Story) -> None:
        while is_held_back() and time.monotonic() < self._ends_at:
            time.sleep(LOOK_AGAIN)
        if time.monotonic() > self._ends_at + LATE:
            ledger.write("left out", instance=story.id)
            return
        _until_accepted(story, lambda: self.door.start(story))
        ledger.write("accepted", instance=story.id)
        if story.is_repeated:
            answer = _until_accepted(story, lambda: self.door.start(story))
            ledger.write("again", instance=story.id, step=answer)
        accepted_at = time.monotonic()
        for deed in story.deeds:
            self._plan(accepted_at + deed.after, story, deed)

    def _do(self, story: Story, deed: Deed) -> None:
        answer = _until_accepted(story, lambda: self.door.do(story, deed))
        ledger.write(deed.verb, instance=story.id, step=deed.key or answer, key=answer)
        if deed.is_repeated:
            again = _until_accepted(story, lambda: self.door.do(story, deed))
            ledger.write("sent again", instance=story.id, step=deed.key, key=again)


def _until_accepted(story: Story, act: Callable[[], str]) -> str:
    while True:
        try:
            return act()
        except NotAcceptedError as error:
            ledger.write("not accepted", instance=story.id, step=str(error)[:200])
            time.sleep(TRY_AGAIN)
