"""The difference of two versions of a handler, line by line, as HTML."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from django.utils.safestring import SafeString, mark_safe

from studio.diagram.difference import Difference, Stretch, difference
from studio.diagram.listing import CodeLine
from studio.workflows.code import Found, handler_of

CONTEXT = 3  # equal lines around what differs
SHORTEST_FOLD = 4
MOST = 600  # lines on a page
ADDED = '<span class="sign" role="img" aria-label="added">+</span>'
REMOVED = '<span class="sign" role="img" aria-label="removed">\u2212</span>'


@dataclass(frozen=True, slots=True)
class Compared:
    """Two versions with what differs."""

    old: tuple[CodeLine, ...]
    new: tuple[CodeLine, ...]
    found: Difference
    begins: Set[int] = frozenset()  # the lines at which another function of the new version begins

    @property
    def added(self) -> int:
        return len(self.found.added)

    @property
    def removed(self) -> int:
        return len(self.found.removed)

    @property
    def is_matched(self) -> bool:
        return self.found.is_matched

    @property
    def is_cut(self) -> bool:
        return sum(_length(one) for one in self.found.stretches) > MOST

    @property
    def most(self) -> int:
        return MOST

    def marks_of_old(self) -> Mapping[int, str]:
        """Return what stands before the lines that the new version no longer has, by their number."""
        return {self.old[at].number: REMOVED for at in self.found.removed}

    def marks_of_new(self) -> Mapping[int, str]:
        return {self.new[at].number: ADDED for at in self.found.added}

    def html(self) -> SafeString:
        """Return the items of a list. Equal lines away from what differs are folded."""
        # Safe: numbers, and lines that the listing has escaped.
        return mark_safe("".join(self._rows()))  # noqa: S308

    def _rows(self) -> Iterator[str]:
        left = MOST
        last = len(self.found.stretches) - 1
        for at, one in enumerate(self.found.stretches):
            if left <= 0:
                return
            if one.is_equal:
                yield from self._equal(one, is_first=at == 0, is_last=at == last)
            else:
                yield self._changed(one, left)
            left -= _length(one)

    def _changed(self, one: Stretch, most: int) -> str:
        old = "".join(_row(REMOVED, self.old[at]) for at in one.old[:most])
        new = "".join(_row(ADDED, self.new[at]) for at in one.new[: max(most - len(one.old), 0)])
        sides = (("removed", old), ("added", new))
        lists = "".join(f'<ol class="{side}">{rows}</ol>' for side, rows in sides if rows)
        return f'<li class="change">{lists}</li>'

    def _equal(self, one: Stretch, *, is_first: bool, is_last: bool) -> Iterator[str]:
        head, tail = 0 if is_first else CONTEXT, 0 if is_last else CONTEXT
        pairs = list(zip(one.old, one.new, strict=True))
        middle = pairs[head : len(pairs) - tail]
        if len(middle) < SHORTEST_FOLD:
            yield from (self._both(*pair) for pair in pairs)
            return
        yield from (self._both(*pair) for pair in pairs[:head])
        yield self._fold(middle)
        yield from (self._both(*pair) for pair in pairs[len(pairs) - tail :])

    def _fold(self, pairs: Sequence[tuple[int, int]]) -> str:
        said = f"{len(pairs):,} unchanged lines"
        if len(pairs) > MOST // 6:
            first, last = self.new[pairs[0][1]].number, self.new[pairs[-1][1]].number
            return f'<li class="fold"><span>{said}, {first:,} to {last:,} of the newer version</span></li>'
        rows = "".join(self._both(*pair) for pair in pairs)
        return f'<li class="fold"><details><summary>{said}</summary><ol>{rows}</ol></details></li>'

    def _both(self, old: int, new: int) -> str:
        numbers = (
            f'<span class="n">{self.old[old].number}</span><span class="n">{self.new[new].number}</span>'
        )
        begins = ' class="begins"' if self.new[new].number in self.begins else ""
        return f"<li{begins}>{numbers}<code>{self.new[new].html}</code></li>"


def compared(old: Found, new: Found) -> Compared:
    """Compare the lines of two versions that are shown: those of the handler and of the functions that it calls."""
    before, after = handler_of(old).listing, handler_of(new).listing
    found = _difference(tuple(one.text for one in before.lines), tuple(one.text for one in after.lines))
    return Compared(before.lines, after.lines, found, after.others)


@functools.lru_cache(maxsize=50)
def _difference(old: tuple[str, ...], new: tuple[str, ...]) -> Difference:
    return difference(old, new)


def _row(sign: str, line: CodeLine) -> str:
    return f'<li><span class="n">{line.number}</span>{sign}<code>{line.html}</code></li>'


def _length(one: Stretch) -> int:
    """Return how many lines of a stretch are on the page."""
    return min(len(one.old), 2 * CONTEXT + MOST // 6) if one.is_equal else len(one.old) + len(one.new)
