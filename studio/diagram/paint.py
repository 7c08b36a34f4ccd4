"""What an instance has done of a flow, as far as its drawing shows it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

UNREACHED = "circle-dashed"


@dataclass(frozen=True, slots=True)
class Paint:
    """How a step looks: its status as word and icon, and the shortest fact."""

    status: str
    icon: str
    fact: str

    @property
    def spoken(self) -> str:
        """The status in words, with the fact unless that is the same."""
        word = self.status.replace("_", " ")
        return word if self.fact in ("", word) else f"{word}, {self.fact}"


@dataclass(frozen=True, slots=True)
class Painting:
    """What was done: the paints by id of the item, and what control has reached."""

    paints: Mapping[str, Paint]
    taken: Set[str]

    def is_taken(self, *needs: str) -> bool:
        return all(one in self.taken for one in needs)
