"""What is paused of some workflows, and the addresses of the pages that pause and resume them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from engine.status import holds
from engine.status.holds import PausedWorkflow
from studio.display.at_least import counted
from studio.instances.status_counts import COUNT_CAP


@dataclass(frozen=True, slots=True)
class Pauses:
    """Some workflows, and which of them are paused. `back` is the page from which people pause and resume them."""

    names: tuple[str, ...]
    paused: tuple[PausedWorkflow, ...]
    back: str = ""

    @property
    def active(self) -> list[str]:
        """The names of those that are not paused."""
        paused = {one.name for one in self.paused}
        return [name for name in self.names if name not in paused]

    @property
    def held(self) -> int:
        return sum(one.held for one in self.paused)

    @property
    def is_all(self) -> bool:
        return len(self.paused) == len(self.names)

    @property
    def pause_address(self) -> str:
        """The page that pauses those that are not paused."""
        return _address("studio:pause_workflows", self.active, self.back)

    @property
    def resume_address(self) -> str:
        """The page that resumes those that are paused."""
        return _address("studio:resume_workflows", [one.name for one in self.paused], self.back)


def pauses_of(names: Sequence[str], back: str = "") -> Pauses:
    """Read which of these workflows are paused."""
    return Pauses(tuple(names), tuple(paused_of(names)), back)


def paused_of(names: Sequence[str]) -> list[PausedWorkflow]:
    """Return those of these workflows that are paused, with counts that say when they are cut."""
    found = holds.paused_workflows(names, most=COUNT_CAP)
    return [PausedWorkflow(one.pause, counted(one.held, COUNT_CAP)) for one in found]


def _address(page: str, names: Sequence[str], back: str) -> str:
    query = urlencode([*(("workflow", name) for name in names), *((("next", back),) if back else ())])
    return f"{reverse(page)}?{query}"
