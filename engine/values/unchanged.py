"""An argument that was not given, where None is a value like any other."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Unchanged(Enum):
    """The type of UNCHANGED."""

    UNCHANGED = "unchanged"

    def __repr__(self) -> str:
        return self.name


UNCHANGED: Final = Unchanged.UNCHANGED
