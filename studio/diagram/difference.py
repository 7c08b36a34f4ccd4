"""Which lines differ between two versions of a handler.

Lines that occur once in both are matched first, in the longest order that both have. Between them, Myers' algorithm
finds a shortest difference. All its searches together have a limit: with that, 5,000 lines take a tenth of a second.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

MOST_STEPS = 40_000  # of the searches: the lines on their ways

Pairs = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lines of both versions, counted from 0 up to but not including the ends: equal, or in place of each other."""

    is_equal: bool
    old: range
    new: range


@dataclass(frozen=True, slots=True)
class Difference:
    """The stretches of two versions. `is_matched` is false if too much has changed to find what has not."""

    stretches: tuple[Stretch, ...]
    is_matched: bool = True

    @property
    def removed(self) -> list[int]:
        return [at for one in self.stretches if not one.is_equal for at in one.old]

    @property
    def added(self) -> list[int]:
        return [at for one in self.stretches if not one.is_equal for at in one.new]


def difference(old: Sequence[str], new: Sequence[str]) -> Difference:
    """Compare lines; blanks at their ends do not count, as in fingerprints."""
    numbers: dict[str, int] = {}
    search = _Search(
        [numbers.setdefault(line.rstrip(), len(numbers)) for line in old],
        [numbers.setdefault(line.rstrip(), len(numbers)) for line in new],
    )
    pairs = search.pairs()
    return Difference(tuple(_stretches(pairs, len(old), len(new))), search.left > 0)


class _Search:
    """A search for equal lines, which are numbers here. `left` is 0 if it was given up somewhere."""

    def __init__(self, old: Sequence[int], new: Sequence[int]) -> None:
        self._old, self._new = old, new
        self.left = MOST_STEPS

    def pairs(self) -> Pairs:
        """Return pairs of equal lines, in the order of both versions."""
        found: Pairs = []
        x = y = 0
        for at, to in [*self._anchors(), (len(self._old), len(self._new))]:
            found += self._between(range(x, at), range(y, to))
            if at < len(self._old):
                found.append((at, to))
            x, y = at + 1, to + 1
        return found

    def _anchors(self) -> Pairs:
        """Return the lines that occur once in both, as many as have the same order."""
        ones = {line for line, n in Counter(self._old).items() if n == 1}
        ones &= {line for line, n in Counter(self._new).items() if n == 1}
        places = {line: at for at, line in enumerate(self._old)}
        order = [(places[line], at) for at, line in enumerate(self._new) if line in ones]
        return _longest_rise(order)

    def _between(self, old: range, new: range) -> Pairs:
        head = tail = 0
        most = min(len(old), len(new))
        while head < most and self._old[old[head]] == self._new[new[head]]:
            head += 1
        while tail < most - head and self._old[old[-1 - tail]] == self._new[new[-1 - tail]]:
            tail += 1
        inner = self._in_both(old[head : len(old) - tail], new[head : len(new) - tail])
        found = self._shortest(*inner) if inner[0] else []
        before = list(zip(old[:head], new[:head], strict=True))
        after = list(zip(old[len(old) - tail :], new[len(new) - tail :], strict=True))
        return [*before, *((inner[0][x], inner[1][y]) for x, y in found), *after]

    def _in_both(self, old: range, new: range) -> tuple[list[int], list[int]]:
        """Return the places of lines that the other version has, too."""
        both = {self._old[at] for at in old} & {self._new[at] for at in new}
        return [at for at in old if self._old[at] in both], [at for at in new if self._new[at] in both]

    def _shortest(self, old: Sequence[int], new: Sequence[int]) -> Pairs:
        """Return the pairs of a shortest difference; none if the search takes too long."""
        before, after = [self._old[at] for at in old], [self._new[at] for at in new]
        n, m = len(before), len(after)
        reach = {1: 0}  # by diagonal: how far into the old lines
        trace: list[dict[int, int]] = []
        for d in range(n + m + 1):
            trace.append(reach.copy())
            for k in range(-d, d + 1, 2):
                x = _start(reach, d, k)
                begun = x
                while x < n and x - k < m and before[x] == after[x - k]:
                    x += 1
                reach[k] = x
                self.left -= x - begun + 1
                if x >= n and x - k >= m:
                    return _walked_back(trace, n, m)
            if self.left <= 0:
                self.left = 0
                return []
        return []


def _longest_rise(order: Pairs) -> Pairs:
    """Return the longest part of these pairs in which the first numbers rise, too."""
    ends: list[int] = []
    heads: list[int] = []
    before: list[int | None] = []
    for at, (place, _) in enumerate(order):
        length = bisect(ends, place)
        ends[length : length + 1] = [place]
        heads[length : length + 1] = [at]
        before.append(heads[length - 1] if length else None)
    found: Pairs = []
    last = heads[-1] if heads else None
    while last is not None:
        found.append(order[last])
        last = before[last]
    return found[::-1]


def _start(reach: Mapping[int, int], d: int, k: int) -> int:
    """Return where a diagonal goes on from its neighbours: below an added line, or after a removed one."""
    return reach[k + 1] if _is_added(reach, d, k) else reach[k - 1] + 1


def _is_added(reach: Mapping[int, int], d: int, k: int) -> bool:
    return k == -d or (k != d and reach[k - 1] < reach[k + 1])


def _walked_back(trace: Sequence[Mapping[int, int]], x: int, y: int) -> Pairs:
    pairs: Pairs = []
    for d in range(len(trace) - 1, -1, -1):
        k = x - y
        start = _start(trace[d], d, k) if d else 0
        while x > start:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        if d:
            x, y = (x, y - 1) if _is_added(trace[d], d, k) else (x - 1, y)
    return pairs[::-1]


def _stretches(pairs: Pairs, n: int, m: int) -> Iterator[Stretch]:
    """Join pairs of equal lines to stretches, with those in between that have no pair."""
    x = y = at = 0
    while at < len(pairs):
        first, end = pairs[at], at
        if first != (x, y):
            yield Stretch(False, range(x, first[0]), range(y, first[1]))
        while end < len(pairs) and pairs[end] == (first[0] + end - at, first[1] + end - at):
            end += 1
        x, y = first[0] + end - at, first[1] + end - at
        yield Stretch(True, range(first[0], x), range(first[1], y))
        at = end
    if (x, y) != (n, m):
        yield Stretch(False, range(x, n), range(y, m))
