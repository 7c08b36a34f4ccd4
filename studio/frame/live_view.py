"""What a page watches. The page, its socket and its slow reconcile render it with the same code."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict

from studio.access.permissions import Verb, require
from studio.frame.pieces import Drawing

LONGEST_QUERY = 8_000  # characters of the query string that names a view


@dataclass(frozen=True, slots=True)
class LiveView(ABC):
    """A topic with its filter. Equal views look the same to users with equal rights, unless a drawing is personal."""

    topic: ClassVar[re.Pattern[str]]
    verb: ClassVar[Verb] = Verb.VIEW  # what a user needs to see it
    seconds_between: ClassVar[float] = 0.5  # from one rendering to the next while changes go on
    shares_reading: ClassVar[bool] = False  # drawings for several people begin together, and read once
    moves_by_itself: ClassVar[bool] = False  # render again even without changes: bars grow

    @classmethod
    @abstractmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        """Return the view of a query string whose topic matched."""

    @property
    def workflow(self) -> str | None:
        """The workflow of the whole view, or None."""
        return None

    @property
    def instance_key(self) -> int | None:
        """The instance of the whole view, or None if changes of any instance matter."""
        return None

    def concerns(self, changed: frozenset[int] | None) -> bool:
        return changed is None or self.instance_key is None or self.instance_key in changed

    def draw(self, user: Any) -> Drawing:
        """Render every piece for a user. A view whose subject was deleted may have no pieces.

        Raises RefusedError if the user may not see it.
        """
        require(user, self.verb, self.workflow)
        return self.drawing(user)

    @abstractmethod
    def drawing(self, user: Any) -> Drawing:
        """Render it for a user who may see it."""
