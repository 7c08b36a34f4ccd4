"""Count the large bodies of strangers that this process holds, so that they do not take its memory.

A body is held from when it exceeds 64 KiB until its request is answered.
"""

from __future__ import annotations

from collections import Counter

MOST = 32
MOST_OF_AN_ADDRESS = 16


class LargeBodies:
    """How many there are, by address."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    def is_full_for(self, address: str) -> bool:
        return self._held.total() >= MOST or self._held[address] >= MOST_OF_AN_ADDRESS

    def enter(self, address: str) -> None:
        self._held[address] += 1

    def leave(self, address: str) -> None:
        self._held -= Counter([address])  # drops addresses at zero
