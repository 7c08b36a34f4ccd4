"""What a page watches: the page itself, its socket and its slow reconcile draw it in the same way."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from django.http import QueryDict

from studio.access.permissions import Verb, require
from studio.frame.pieces import Drawing


@dataclass(frozen=True, slots=True)
class LiveView(ABC):
    """A topic with its filter. Equal ones are drawn alike for people with the same rights."""

    topic: ClassVar[re.Pattern[str]]
    seconds_between: ClassVar[float] = 1.0  # in which changes gather before they are drawn
    moves_by_itself: ClassVar[bool] = False  # bars of what runs grow, also when nothing happens

    @classmethod
    @abstractmethod
    def of(cls, topic: re.Match[str], given: QueryDict) -> Self:
        """Read it from an address whose `topic` matched."""

    @property
    def workflow(self) -> str | None:
        """The workflow that all of it is about, where the view itself names one."""
        return None

    @property
    def instance_key(self) -> int | None:
        """The instance that all of it is about; None where a change of any may be seen."""
        return None

    def concerns(self, changed: frozenset[int] | None) -> bool:
        return changed is None or self.instance_key is None or self.instance_key in changed

    def draw(self, user: Any) -> Drawing:
        """Draw every piece for a person. A view whose subject is gone has no pieces.

        Raises RefusedError if the person may not see it.
        """
        require(user, Verb.VIEW, self.workflow)
        return self.drawing(user)

    @abstractmethod
    def drawing(self, user: Any) -> Drawing:
        """Draw it for a person who may see it."""
