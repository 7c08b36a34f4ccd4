"""The queues as the page shows them: what waits for a worker, the oldest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.urls import reverse
from django.utils.http import urlencode

from engine.status.facts import Capacity
from engine.status.holds import PausedWorkflow
from engine.status.load import CAP, Queue
from engine.values.durations import format_duration
from studio.display.at_least import counted
from studio.display.bars import SmallBars, small_bars

OLD = timedelta(minutes=5)
SHOWN = 100


@dataclass(frozen=True, slots=True)
class Waiting:
    """A queue: the instances of a workflow that wait for a worker, and those that a pause holds, of them or of it."""

    queue: Queue
    clusters: tuple[str, ...]  # that serve it
    is_served: bool  # also if that could not be read
    is_old: bool
    started: tuple[int, ...]  # within the last hour, by spans of three minutes
    capacity: Capacity | None = None
    pause: PausedWorkflow | None = None

    @property
    def workflow(self) -> str:
        return self.queue.workflow

    @property
    def row_id(self) -> str:
        return f"queue-{self.workflow}"

    @property
    def count(self) -> int:
        return counted(self.queue.waiting, CAP)

    @property
    def paused(self) -> int:
        return counted(self.queue.paused + self.queue.held, CAP)

    @property
    def held_status(self) -> str:
        """Return the status in which the list shows what a pause holds."""
        return "open" if self.queue.held else "paused"

    @property
    def oldest_at(self) -> datetime | None:
        return self.queue.oldest_at

    @property
    def is_at_limit(self) -> bool:
        """Return whether its instances wait because as many run as may run (`max_running`)."""
        return self.capacity is not None and self.capacity.is_full

    @property
    def bars(self) -> SmallBars:
        return small_bars(self.started)

    @property
    def bars_words(self) -> str:
        if not any(self.started):
            return "None started in the last hour."
        return f"{sum(self.started):,} started in the last hour, at most {max(self.started):,} in 3 minutes."

    @property
    def resume_address(self) -> str:
        query = urlencode({"workflow": self.workflow, "next": reverse("studio:workers")})
        return f"{reverse('studio:resume_workflows')}?{query}"

    @property
    def came(self) -> str:
        return rate(self.queue.came_per_minute)

    @property
    def began(self) -> str:
        return rate(self.queue.began_per_minute)

    @property
    def outlook(self) -> str:
        """Return in words when it is empty."""
        if not self.count:
            if self.queue.held:
                return "held by a pause"
            return "keeps up" if self.queue.came_per_minute else ""
        if not self.is_served:
            return "no worker serves it"
        if self.is_at_limit and self.capacity is not None:
            return f"limit of {self.capacity.limit} reached"
        empty = self.queue.empty_in
        if empty is None:
            return "does not catch up"
        return "over a day" if empty > timedelta(days=1) else f"about {_rough(empty)}"

    @property
    def is_bad(self) -> bool:
        return self.outlook in ("does not catch up", "no worker serves it")


def waiting(
    queues: Sequence[Queue],
    *,
    now: datetime,
    capacity: Mapping[str, Capacity],
    served: Mapping[str, Sequence[str]] | None,
    started: Mapping[str, tuple[int, ...]],
    pauses: Sequence[PausedWorkflow] = (),
) -> list[Waiting]:
    """Sort queues: the oldest first, then those with something held by a pause, then by name.

    `served` are the clusters of each workflow, or None if they could not be read; `started` is how many started
    within the last hour.
    """
    paused = {one.name: one for one in pauses}
    found = sorted(
        queues,
        key=lambda one: (
            one.oldest_at is None,
            one.oldest_at.timestamp() if one.oldest_at else 0.0,
            not (one.paused or one.held or one.workflow in paused),
            one.workflow,
        ),
    )
    return [
        Waiting(
            one,
            tuple((served or {}).get(one.workflow, ())),
            is_served=served is None or one.workflow in served,
            is_old=one.oldest_at is not None and now - one.oldest_at > OLD,
            started=started[one.workflow],
            capacity=capacity.get(one.workflow),
            pause=paused.get(one.workflow),
        )
        for one in found[:SHOWN]
    ]


def rate(per_minute: float) -> str:
    """Return a rate without false precision."""
    if 0 < per_minute < 0.95:
        return f"{max(per_minute, 0.1):.1f}"
    return f"{per_minute:,.0f}"


def _rough(span: timedelta) -> str:
    minutes = span.total_seconds() / 60
    return "1 min" if minutes < 1.5 else format_duration(timedelta(minutes=round(minutes)))
