"""Schedules whose time has passed without a start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.urls import reverse

from engine.models import ScheduleRow
from engine.status.limits import Limits
from engine.status.sentences.sentence import Moment
from studio.home.group import Block, Group, Hour, Rank, shares_of

MOST = 100
HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Overdue:
    """A schedule that is overdue."""

    workflow: str
    name: str
    next_at: datetime


def read(names: Sequence[str], now: datetime) -> list[Overdue]:
    """Read what is overdue, the first planned first, with one query."""
    rows = ScheduleRow.objects.filter(workflow__in=names, next_at__lte=now - Limits().max_due)
    found = rows.order_by("next_at").values_list("workflow", "name", "next_at")[:MOST]
    return [Overdue(workflow, name, at) for workflow, name, at in found if at is not None]


def blocks(found: Sequence[Overdue], now: datetime) -> Iterator[Block]:
    """Yield one row for all of them: they have one cause, and one page."""
    if not found:
        return
    first = found[0]
    what = (
        f"{first.workflow}: {first.name} is overdue"
        if len(found) == 1
        else f"{len(found)} schedules are overdue"
    )
    yield (
        Group(
            kind="overdue",
            rank=Rank.OVERDUE,
            key="overdue",
            count=len(found),
            look="retrying",
            title=what,
            shares=shares_of((one.workflow, 1) for one in found),
            line=(("not started yet",),),
            since=first.next_at,
            then=(Moment("ago", first.next_at),),
            hour=Hour.of(sum(now - one.next_at < HOUR for one in found)),
            page=reverse("studio:schedules"),
        ),
    )
