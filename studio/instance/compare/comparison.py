"""Two runs side by side: where they went, how long it took, with what, and what came out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from studio.display import payloads
from studio.instance.compare.json_diff import SHOWN, Difference, Differences, differences
from studio.instance.compare.path import Pair, pairs_of
from studio.instance.compare.side import OUTPUTS, Output, Side, Value, outputs_of

SHORT = 40  # steps; all are shown


@dataclass(frozen=True)
class ValueDiff:
    """Two values of one kind. `found` is None if they are too large to compare, not readable, or were never there."""

    found: Differences | None
    here: Value | None
    there: Value | None

    @property
    def is_same(self) -> bool:
        return self.found is not None and not self.found.rows

    @property
    def is_unreadable(self) -> bool:
        return any(value is not None and not value.is_readable for value in (self.here, self.there))

    @property
    def is_too_large(self) -> bool:
        is_on_both = self.here is not None and self.there is not None
        return self.found is None and is_on_both and not self.is_unreadable


@dataclass(frozen=True, slots=True)
class Line:
    """A pair of steps, as the table shows it. `output` is set if what they returned differs."""

    pair: Pair
    word: str
    output: Difference | None
    differs: bool


@dataclass(frozen=True)
class Comparison:
    """Two runs. Everything about the first is "here"."""

    here: Side
    there: Side

    @property
    def is_of_generations(self) -> bool:
        return self.here.instance.key == self.there.instance.key

    @cached_property
    def lines(self) -> list[Line]:
        """All steps of both, in the order of the first."""
        newer = max(self.here.generation, self.there.generation) if self.is_of_generations else None
        pairs = pairs_of(self.here.steps, self.there.steps, newer=newer)
        outputs = self._outputs(pairs)
        return [self._line(pair, outputs.get(pair.either.key)) for pair in pairs]

    @cached_property
    def differing(self) -> list[Line]:
        return [line for line in self.lines if line.differs]

    @cached_property
    def params(self) -> ValueDiff:
        return _diff(self.here.params, self.there.params)

    @cached_property
    def result(self) -> ValueDiff:
        return _diff(self.here.output, self.there.output)

    @property
    def has_same_code(self) -> bool:
        return self.here.instance.code == self.there.instance.code

    @property
    def more(self) -> timedelta | None:
        """How much longer the whole took here."""
        mine, other = self.here.took, self.there.took
        return mine - other if mine is not None and other is not None else None

    @property
    def only_here(self) -> list[Pair]:
        return [line.pair for line in self.differing if line.pair.there is None]

    @property
    def only_there(self) -> list[Pair]:
        return [line.pair for line in self.differing if line.pair.here is None]

    def _line(self, pair: Pair, output: Difference | None) -> Line:
        return Line(pair, self._word(pair), output, differs=pair.differs or output is not None)

    def _word(self, pair: Pair) -> str:
        """Return what became of a step from one run to the other."""
        if not self.is_of_generations:
            return "only here" if pair.there is None else "only there" if pair.here is None else "same"
        if pair.is_kept:
            return "kept"
        is_newer = self.here.generation > self.there.generation
        if pair.here is None or pair.there is None:
            return "new" if (pair.there is None) == is_newer else "gone"
        return "ran again"

    def _outputs(self, pairs: Iterable[Pair]) -> Mapping[tuple[str, str, int], Difference]:
        """Compare what the first matched steps returned."""
        both = [(pair.here, pair.there) for pair in pairs if pair.here and pair.there and not pair.is_kept]
        mine = outputs_of(self.here, [here.seq for here, _ in both[:OUTPUTS]])
        other = outputs_of(self.there, [there.seq for _, there in both[:OUTPUTS]])
        found = {}
        for here, there in both[:OUTPUTS]:
            one, two = mine.get(here.seq), other.get(there.seq)
            if one is not None and two is not None and _differ(one, two):
                found[here.key] = Difference("", _beginning(one), _beginning(two))
        return found


def _differ(one: Output, two: Output) -> bool:
    # What is encrypted differs each time, also if it is the same.
    return one.digest != two.digest and not (one.has_secret or two.has_secret)


def _beginning(output: Output) -> str:
    return payloads.one_line(output.beginning, SHOWN)


def _diff(here: Value | None, there: Value | None) -> ValueDiff:
    may = [value is not None and value.is_whole and value.is_readable for value in (here, there)]
    if here is None or there is None or not all(may):
        return ValueDiff(None, here, there)
    return ValueDiff(differences(here.decoded, there.decoded), here, there)
