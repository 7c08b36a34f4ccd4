"""What a job would do if it were started now, as the dialog shows it before anything is done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from engine import bulk
from engine.bulk import Preview
from engine.jobs.surroundings import MOST_KEYS, Overlap, Surroundings, surroundings
from studio.bulk.asked import Asked, operable
from studio.bulk.wording import EFFECTS, ICONS, WILL_BE, Effect
from studio.frame.patience import patience
from studio.workflows.pauses import Pauses, pauses_of

PATIENCE_S = 5
CONFIRMED_ABOVE = 100
MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class Example:
    """An instance that is named as an example."""

    workflow: str
    id: str


@dataclass(frozen=True, slots=True)
class Share:
    """Instances that are treated alike: how many, in words, and a few of them."""

    count: int
    words: str
    examples: tuple[Example, ...]

    @property
    def others(self) -> int:
        return self.count - len(self.examples)


@dataclass(frozen=True, slots=True)
class Found:
    """The instances of a job by what will happen to them, and what to know before it is started."""

    asked: Asked
    preview: Preview
    around: Surroundings
    pauses: Pauses
    at: datetime

    @property
    def action(self) -> str:
        return self.preview.action

    @property
    def runs(self) -> bool:
        """Whether the instances run afterwards, so that they can fail again."""
        return self.action in ("retry", "resume", "restart")

    @property
    def waits(self) -> bool:
        """Whether they would run, but for the pause of their workflow."""
        return self.runs and bool(self.pauses.paused)

    @property
    def paused_names(self) -> str:
        names = [one.name for one in self.pauses.paused]
        more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
        return ", ".join(names[:MOST_NAMED]) + more

    @property
    def verb(self) -> str:
        return self.action.capitalize()

    @property
    def icon(self) -> str:
        return ICONS[self.action]

    @property
    def effects(self) -> tuple[Effect, ...]:
        return EFFECTS[self.action]

    @property
    def eligible(self) -> Share:
        return Share(self.preview.eligible, WILL_BE[self.action], _examples(self.preview.examples))

    @property
    def by_workflow(self) -> tuple[tuple[str, int], ...]:
        """How many are of each workflow, if they are of several; the most first."""
        return self.around.workflows[:MOST_NAMED] if len(self.around.workflows) > 1 else ()

    @property
    def more_workflows(self) -> int:
        return max(len(self.around.workflows) - MOST_NAMED, 0)

    @property
    def rolled_back(self) -> Share | None:
        found = self.preview.rolled_back
        return Share(found.count, found.reason, _examples(found.examples)) if found else None

    @property
    def restartable(self) -> str:
        """The keys of those that were rolled back, as a form has them; empty if they are too many for one."""
        found = self.around.rolled_back
        return ",".join(str(key) for key in found) if len(found) <= MOST_KEYS else ""

    @property
    def skipped(self) -> list[Share]:
        return [Share(one.count, one.reason, _examples(one.examples)) for one in self.preview.skipped]

    @property
    def gone(self) -> int:
        """How many of the ticked ones are not there any more."""
        return max(len(self.asked.ticked) - self.preview.total, 0)

    @property
    def needs_number(self) -> bool:
        return self.preview.eligible > CONFIRMED_ABOVE

    @property
    def overlaps(self) -> tuple[Overlap, ...]:
        return self.around.overlaps


def look(asked: Asked, user: Any) -> Found:
    """Read what the job would do now. Raises RepriseError for what cannot be searched, and TooSlowError."""
    workflows = operable(user)
    with patience(PATIENCE_S):
        preview = bulk.preview(asked.action, **asked.chosen, workflows=workflows, **asked.options)
        around = surroundings(asked.action, **asked.chosen, workflows=workflows)
    names = sorted(name for name, _ in around.workflows)
    return Found(asked, preview, around, pauses_of(names), timezone.now())


def _examples(named: tuple[str, ...]) -> tuple[Example, ...]:
    return tuple(Example(*one.split("/", 1)) for one in named)
