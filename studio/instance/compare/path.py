"""The steps of two runs side by side, matched by kind, name and count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

LEAST = 500_000  # microseconds; a smaller difference is not worth a word
TIMES = 2  # how many times as long


class StepRow(NamedTuple):
    """A step of the handler, as far as it is compared."""

    seq: int
    kind: str
    name: str
    nth: int  # of its kind and name
    status: str
    attempts: int
    kept_from: int | None
    micros: int | None  # how long it took; a column of times would take longer to read than all else

    @property
    def key(self) -> tuple[str, str, int]:
        return self.kind, self.name, self.nth

    @property
    def label(self) -> str:
        return self.name if self.nth == 1 else f"{self.name} #{self.nth}"

    @property
    def took(self) -> timedelta | None:
        return None if self.micros is None else timedelta(microseconds=self.micros)


@dataclass(frozen=True, slots=True)
class Pair:
    """A step of both runs, or of one. `is_kept` means that it ran only once: a restart has taken it over."""

    here: StepRow | None
    there: StepRow | None
    is_kept: bool = False

    @property
    def either(self) -> StepRow:
        found = self.here or self.there
        assert found is not None
        return found

    @property
    def label(self) -> str:
        return self.either.label

    @property
    def micros(self) -> tuple[int | None, int | None]:
        """How long it took here and there, if it ran in both."""
        if self.here is None or self.there is None or self.is_kept:
            return None, None
        return self.here.micros, self.there.micros

    @property
    def more(self) -> timedelta | None:
        """How much longer it took here, if it ended in both runs."""
        mine, other = self.micros
        return timedelta(microseconds=mine - other) if mine is not None and other is not None else None

    @property
    def is_slower_or_faster(self) -> bool:
        return is_notable(*self.micros)

    @property
    def ends_differently(self) -> bool:
        return self.here is not None and self.there is not None and self.here.status != self.there.status

    @property
    def has_other_attempts(self) -> bool:
        return self.here is not None and self.there is not None and self.here.attempts != self.there.attempts

    @property
    def differs(self) -> bool:
        """Whether there is something to see, apart from its output."""
        is_one_sided = self.here is None or self.there is None
        return is_one_sided or self.ends_differently or self.has_other_attempts or self.is_slower_or_faster


def is_notable(here: int | None, there: int | None) -> bool:
    """Return whether one took so many microseconds more than the other that a person should know."""
    if here is None or there is None or abs(here - there) < LEAST:
        return False
    return max(here, there) >= TIMES * min(here, there)


def pairs_of(here: Sequence[StepRow], there: Sequence[StepRow], *, newer: int | None = None) -> list[Pair]:
    """Match the steps of two runs, in the order of the first; steps of the other one are where they ran in it.

    `newer` is the number of the newer generation if these are two of one instance: it says which steps were kept.
    """
    mine, other = {step.key: step for step in here}, {step.key: step for step in there}
    found: list[Pair] = []
    at = 0  # in the other run
    for step in here:
        while at < len(there) and there[at].key not in mine:
            found.append(Pair(None, there[at]))
            at += 1
        match = other.get(step.key)
        found.append(Pair(step, match, is_kept=_is_kept(step, match, newer)))
        while at < len(there) and match is not None and there[at].seq <= match.seq and there[at].key in mine:
            at += 1
    return found + [Pair(None, step) for step in there[at:] if step.key not in mine]


def _is_kept(here: StepRow, there: StepRow | None, newer: int | None) -> bool:
    if newer is None or there is None:
        return False
    return here.kept_from is not None or there.kept_from is not None
