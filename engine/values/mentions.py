"""Find `@name` in a text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

# The characters of Django's user names. An `@` inside a word belongs to an e-mail address.
_MENTION = re.compile(r"(?<![\w@.+-])@([\w@.+-]{1,150})")
_ENDINGS = "@.+-"


@dataclass(frozen=True, slots=True)
class Mention:
    """A place in a text that may name a person, and the names that it may mean, the longest first."""

    start: int
    names: tuple[str, ...]

    def end(self, name: str) -> int:
        """Return where the mention ends if it means this name."""
        return self.start + 1 + len(name)

    def meant(self, known: Collection[str]) -> str | None:
        """Return the longest of its names that is known: in "Ask @zoe." the full stop may belong to the name."""
        return next((name for name in self.names if name in known), None)


def mentions_in(text: str) -> Iterator[Mention]:
    """Yield the mentions of a text, in order."""
    for found in _MENTION.finditer(text):
        if names := tuple(_names(found[1])):
            yield Mention(found.start(), names)


def _names(name: str) -> Iterator[str]:
    while name:
        yield name
        if name[-1] not in _ENDINGS:
            return
        name = name[:-1]
