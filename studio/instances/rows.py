"""Instances as lists show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.models import Instance
from engine.status.facts import StatusFacts
from engine.status.gathering import facts_by_key
from engine.status.sentences.sentence import Sentence
from engine.status.sentences.short_line import short_line
from studio.display.status import display_status


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a list."""

    instance: Instance
    status: str
    now: Sentence
    began_at: datetime

    @property
    def took(self) -> timedelta | None:
        finished = self.instance.finished_at
        return finished - self.began_at if finished else None


def rows_of(instances: Sequence[Instance]) -> list[Row]:
    """Return the rows of a page, with seven queries in all."""
    found = facts_by_key(instances)
    return [_row(instance, found[instance.key]) for instance in instances]


def _row(instance: Instance, facts: StatusFacts) -> Row:
    asks = any(step.is_asking for step in facts.steps)
    status = display_status(instance.status, instance.waiting_for, asks=asks)
    return Row(instance, status, short_line(facts), facts.began_at or instance.created_at)
