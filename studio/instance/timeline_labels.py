"""The labels above a timeline, and which of them have room where the line is narrow: on a phone, or beside a pane."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

FOLD_WIDTH = 7.0  # percent of the line that a folded gap takes
LETTER = 2.5  # percent of a narrow line
BETWEEN = 1.5  # percent of a narrow line, at least, between two labels
HALF_NOW = 5.5  # percent of a narrow line, of the word "now", which is centered

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Mark:
    """A label on the axis, or the mark of a folded gap.

    `is_tight`: on a narrow line, it would cover another. `is_before`: it ends in the middle of its gap.
    """

    x: float
    text: str
    folded: bool = False
    is_tight: bool = False
    is_before: bool = False

    @property
    def label_x(self) -> float:
        return round(self.x + FOLD_WIDTH / 2, 2) if self.is_before else self.x

    @property
    def span(self) -> Span:
        """Where its text begins and ends on a narrow line."""
        width = LETTER * (len(self.text) + (3 if self.folded else 0))
        return (self.label_x - width, self.label_x) if self.is_before else (self.x, self.x + width)


def fitted(axis: Iterable[Mark], folds: Iterable[Mark], now: float | None) -> tuple[list[Mark], list[Mark]]:
    """Return the labels of the axis and of folds, which come first: how long somebody has waited is what they ask."""
    taken: list[Span] = [] if now is None else [(now - HALF_NOW, now + HALF_NOW)]
    placed = [fold if _is_free(fold, taken) else replace(fold, is_before=True) for fold in folds]
    shown = [*_fit(placed, taken)]
    return [*_fit(axis, taken)], shown


def _fit(marks: Iterable[Mark], taken: list[Span]) -> Iterator[Mark]:
    """Yield the marks, tight if they have no room beside what is taken; take what the others need."""
    for mark in marks:
        is_free = _is_free(mark, taken)
        if is_free and mark.text:
            taken.append(mark.span)
        yield replace(mark, is_tight=not is_free)


def _is_free(mark: Mark, taken: Sequence[Span]) -> bool:
    first, last = mark.span
    return last <= 100 and all(last + BETWEEN <= a or b + BETWEEN <= first for a, b in taken)
