"""Which entries of the stream a person wants to see, as the address has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from studio.instance.activity.entry import Kind

LONGEST_NAME = 150
OF_PEOPLE = (Kind.EVENTS, Kind.ACTIONS, Kind.VOTES, Kind.NOTES)  # the others have no author


@dataclass(frozen=True, slots=True)
class Wanted:
    """A filter of the stream. No kinds are all of them; `by` is a whole user name."""

    kinds: tuple[Kind, ...] = ()
    by: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Wanted:
        """Read it from a query string, ignoring invalid values."""
        named = {part.strip() for part in str(given.get("kind", ""))[:100].split(",")}
        by = str(given.get("by", "")).replace("\0", "").strip()[:LONGEST_NAME]
        return cls(tuple(kind for kind in Kind if kind in named), by)

    @property
    def filled(self) -> dict[str, str]:
        """The fields that are not empty, as in a query string."""
        fields = {"kind": ",".join(self.kinds), "by": self.by}
        return {name: value for name, value in fields.items() if value}

    def has(self, kind: Kind) -> bool:
        return (not self.kinds or kind in self.kinds) and (not self.by or kind in OF_PEOPLE)

    def query(self, **given: str) -> str:
        """Return the address of this filter within the page of the instance."""
        return "?" + urlencode({"tab": "activity", **self.filled, **given})

    def toggled(self, kind: Kind) -> Wanted:
        """Return the filter with one kind more, or one less. All kinds are the same as none."""
        kinds = tuple(one for one in Kind if (one in self.kinds) != (one == kind))
        return Wanted(() if len(kinds) == len(Kind) else kinds, self.by)

    def of_person(self, name: str) -> Wanted:
        return Wanted(self.kinds, name)
