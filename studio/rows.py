"""From stored instances to what a list shows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.models import Instance
from engine.status import status_line
from engine.status.facts import Situation
from engine.status.gathering import situations
from studio.display_status import shown


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a list."""

    instance: Instance
    status: str
    now: status_line.Sentence
    began_at: datetime

    @property
    def took(self) -> timedelta | None:
        finished = self.instance.finished_at
        return finished - self.began_at if finished else None


def rows_of(instances: Sequence[Instance]) -> list[Row]:
    """Make the lines of a page with seven queries, however long it is."""
    found = situations(instances)
    return [_row(instance, found[instance.key]) for instance in instances]


def _row(instance: Instance, facts: Situation) -> Row:
    asks = any(step.is_asking for step in facts.steps)
    status = shown(instance.status, instance.waiting_for, asks=asks)
    return Row(instance, status, status_line.in_short(facts), facts.began_at or instance.created_at)
