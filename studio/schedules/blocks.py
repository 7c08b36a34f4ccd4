"""A block of the week: what one schedule did within an hour, and what it will do. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from zoneinfo import ZoneInfo

from django.urls import reverse

from engine.models import ScheduleRow
from engine.status.sentences.bidi import isolated
from engine.steer.schedules import starter
from engine.values.identity import stable_hash
from engine.values.shown import OPEN
from studio.display.status import LOOKS
from studio.instances.address import address_of, term_of
from studio.schedules.ran import Refused, Runs

# Which of several outcomes the block has, the worst first.
WORST = (
    "errored",
    "retrying",
    "paused",
    "terminated",
    "approval",
    "waiting",
    "sleeping",
    "queued",
    "running",
)
LONGEST_REASON = 200


@dataclass
class Block:
    """A schedule in an hour of the clock. `until` is when that hour is over: clocks may repeat it.

    What pages show of it is computed once, after everything was added.
    """

    row: ScheduleRow
    hour: datetime
    until: datetime
    zone: ZoneInfo
    runs: list[Runs] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    coming: Sequence[datetime] = ()
    is_overdue: bool = False

    @property
    def name(self) -> str:
        """The workflow, and the name of the schedule if it has one of its own."""
        row = self.row
        return row.workflow if row.name == row.expression else f"{row.workflow} · {row.name}"

    @property
    def key(self) -> str:
        """The id of its element."""
        of = self.row.pk or f"new-{stable_hash(self.row.workflow, self.row.name)}"
        return f"at-{self.hour:%d%H}-{of}"

    @property
    def count(self) -> int:
        return sum(one.count for one in self.runs)

    @property
    def is_past(self) -> bool:
        return bool(self.runs or self.refused)

    @cached_property
    def first(self) -> datetime:
        return min([*(one.first for one in self.runs), *(one.at for one in self.refused), *self.coming])

    @cached_property
    def status(self) -> str:
        """The worst of its outcomes, or what becomes of the times to come."""
        if self.refused:
            return "errored"
        if self.runs:
            found = {one.status for one in self.runs}
            return next((one for one in WORST if one in found), "complete")
        if self.row.paused_at is not None:
            return "paused"
        return "retrying" if self.is_overdue else "queued"

    @property
    def day(self) -> str:
        return f"{self.first.astimezone(self.zone):%A}"

    @cached_property
    def at(self) -> str:
        """The time in the zone of the page: of one run, or of the hour."""
        return self._clock(self.first if self.total == 1 else self.hour)

    @cached_property
    def total(self) -> int:
        return self.count + len(self.refused) + len(self.coming)

    @property
    def missed(self) -> int:
        """How many planned times had passed unused before the latest start, if that is among these."""
        key = self.row.last_instance_key
        return self.row.last_missed if any(one.newest == key for one in self.runs) else 0

    @cached_property
    def words(self) -> str:
        """What became of it, without relying on color."""
        return ", ".join(self._words())

    @cached_property
    def label(self) -> str:
        """The whole of it in a sentence."""
        what = isolated(self.name) if self.total == 1 else f"{self.total} times {isolated(self.name)}"
        return f"{self.day} {self.at}: {what}, {self.words}"

    @property
    def title(self) -> str:
        reason = self.refused[0].reason[:LONGEST_REASON] if self.refused else ""
        return f"{self.label}. {reason}" if reason else self.label

    @property
    def look(self) -> str:
        """Its classes: what is to come is hollow, what is paused is struck."""
        off = " off" if self.row.paused_at is not None else ""
        return f"s-{self.status}" if self.is_past else f"s-{self.status} coming{off}"

    @property
    def icon(self) -> str:
        is_plain = not self.is_past and self.row.paused_at is None and not self.is_overdue
        return "clock" if is_plain else LOOKS[self.status].icon

    @property
    def address(self) -> str:
        """The instance, or the list of several; the schedule if nothing was started."""
        if self.count == 1:
            return reverse("studio:instance", args=[self.row.workflow, self.runs[0].id])
        if self.runs:
            terms = (term_of("workflow", self.row.workflow), term_of("by", starter(self.row)))
            since, until = (f"{one:%Y-%m-%dT%H:%MZ}" for one in (self.hour, self.until))
            return address_of({"query": " ".join((*terms, f"started:>={since}", f"started:<{until}"))})
        where = f"#sc-{self.row.pk}" if self.row.pk else ""
        return f"{reverse('studio:workflow', args=[self.row.workflow])}?tab=schedules{where}"

    def _words(self) -> Iterable[str]:
        if self.refused:
            yield _some(len(self.refused), self.total, "could not start")
        yield from self._outcomes()
        if self.coming:
            yield _some(len(self.coming), self.total, self._coming())
        if self.missed:
            yield f"{self.missed} missed before"

    def _outcomes(self) -> Iterable[str]:
        counts: dict[str, int] = {}
        for one in self.runs:
            counts[one.status] = counts.get(one.status, 0) + one.count
        bad = [name for name in ("errored", "terminated") if name in counts]
        still = [name for name in OPEN if name in counts]
        if "complete" in counts and not (bad or still):
            yield _some(counts["complete"], self.total, "complete") if self.coming else "complete"
        for name in (*bad, *still):
            yield _some(counts[name], self.total, name)

    def _coming(self) -> str:
        if self.row.paused_at is not None:
            return "paused"
        if self.row.pk is None:
            return "planned when a worker starts"
        return "overdue" if self.is_overdue else "to come" if self.is_past else "planned"

    def _clock(self, moment: datetime) -> str:
        """Return a time of the clock, with its zone where clocks show it twice."""
        there = moment.astimezone(self.zone)
        is_twice = there.replace(fold=0).utcoffset() != there.replace(fold=1).utcoffset()
        return f"{there:%H:%M %Z}" if is_twice and self.total == 1 else f"{there:%H:%M}"


def _some(count: int, of: int, what: str) -> str:
    return what if count == of else f"{count} {what}"
