"""How many instances match each view. A page never waits for them: they follow it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engine.status.search import workflow_names
from engine.status.searching.counting import count_newer
from engine.values.query.parsing import parse
from studio.access.permissions import Verb, rights, sees_all, visible
from studio.frame.patience import TooSlowError, patience

EACH_S = 0.3  # how long a count may take
ALL_S = 2.0  # how long all counts of a page may take
FRESH_S = 4.0  # how long users with equal rights share a count
SLOW_FOR_S = 60.0  # how long a count that was too slow is not tried again
KNOWN_FOR_S = 60.0  # how old a count may be with which a page begins
KEPT = 2_000
MANY = 10_000

Key = tuple[frozenset[Verb], str]


@dataclass(frozen=True, slots=True)
class _Count:
    n: int | None  # None: it took too long
    at: float

    @property
    def text(self) -> str:
        """The number as it is shown; empty if it took too long."""
        if self.n is None:
            return ""
        return "10 k+" if self.n > MANY else f"{self.n:,}"

    def is_fresh_at(self, now: float) -> bool:
        return now - self.at < (SLOW_FOR_S if self.n is None else FRESH_S)


_kept: OrderedDict[Key, _Count] = OrderedDict()
_lock = threading.Lock()


def known(query: str, held: frozenset[Verb]) -> str:
    """Return the number of matches as text, if users with these rights have counted them a moment ago."""
    with _lock:
        found = _kept.get((held, query))
    return found.text if found is not None and time.monotonic() - found.at < KNOWN_FOR_S else ""


def counted(queries: Iterable[str], user: Any) -> dict[str, str]:
    """Count the instances of each search, and return the numbers as text: empty for one that takes too long."""
    held, until = rights(user), time.monotonic() + ALL_S
    found: dict[str, str] = {}
    for query in dict.fromkeys(queries):
        with _lock:
            kept = _kept.get((held, query))
        if kept is None or not kept.is_fresh_at(time.monotonic()):
            if time.monotonic() > until:
                found[query] = kept.text if kept is not None else ""
                continue
            kept = _Count(_count(query, user), time.monotonic())
            _keep((held, query), kept)
        found[query] = kept.text
    return found


def forget() -> None:
    """Count everything again."""
    with _lock:
        _kept.clear()


def _keep(key: Key, count: _Count) -> None:
    with _lock:
        _kept[key] = count
        _kept.move_to_end(key)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)


def _count(query: str, user: Any) -> int | None:
    """Return the number of matches; None for a search that takes too long or is not understood."""
    asked = parse(query)
    if asked.problems:
        return None
    names = None if sees_all(user) else visible(user, workflow_names())
    try:
        with patience(EACH_S):
            return count_newer(asked, 0, workflows=names, cap=MANY + 1)
    except TooSlowError:
        return None
