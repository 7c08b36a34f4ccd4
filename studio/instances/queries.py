"""Queries for lists of instances, and the rows to show. None reads a payload or scans without a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from engine.models import Instance
from engine.status.facts import StatusFacts
from engine.status.gathering import facts_by_key, without_values
from engine.status.search import id_begins, keys_alike
from engine.status.sentences.sentence import Sentence
from engine.status.sentences.status_line import short_line
from engine.steer.requests import open_requests
from engine.values.shown import PARKED, display_status, stored
from studio.instances.filters import Filter

PAGE = 50


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list, newest first. Cursors are keys, so that new rows do not shift pages."""

    instances: list[Instance]
    newer: int | None
    older: int | None
    newest: int  # key of the newest instance of all, when the page was read; 0 without one

    @property
    def top(self) -> int:
        return self.instances[0].key if self.instances else self.newest


def matching(wanted: Filter) -> QuerySet[Instance]:
    """Return the instances that match a filter."""
    if wanted.is_impossible:
        return Instance.objects.none()
    rows = without_values()
    if wanted.workflow:
        rows = rows.filter(workflow=wanted.workflow)
    if wanted.status:
        fits = Q()
        for status, waiting_for in stored(wanted.status):
            fits |= Q(status=status) if waiting_for is None else Q(status=status, waiting_for=waiting_for)
        rows = rows.filter(fits)
    asking = open_requests().values("instance_id")
    if wanted.status == "approval":
        rows = rows.filter(key__in=asking)
    elif wanted.status in PARKED:
        rows = rows.exclude(key__in=asking)
    return rows.filter(id_begins(wanted.q)) if wanted.q else rows


def narrowed(wanted: Filter) -> list[int] | None:
    """Return the keys of all instances with a matching id, to search only those; None if too many, or no id."""
    return keys_alike(wanted.q) if wanted.q and not wanted.is_impossible else None


def page_of(
    wanted: Filter,
    *,
    before: int | None = None,
    after: int | None = None,
    among: Sequence[int] | None = None,
) -> Page:
    """Read a page: the newest instances, or those older than `before`, or those newer than `after`.

    `among` are the keys of `narrowed`.
    """
    newest = Instance.objects.order_by("-key").values_list("key", flat=True).first() or 0
    rows = matching(wanted) if among is None else matching(replace(wanted, q="")).filter(key__in=among)
    if after is not None:
        nearest = list(rows.filter(key__gt=after).order_by("key")[: PAGE + 1])
        more = len(nearest) > PAGE
        found = nearest[:PAGE][::-1]
        return Page(found, found[0].key if more and found else None, found[-1].key if found else None, newest)
    if before is not None:
        rows = rows.filter(key__lt=before)
    found = list(rows.order_by("-key")[: PAGE + 1])
    more, found = len(found) > PAGE, found[:PAGE]
    return Page(
        found,
        found[0].key if before is not None and found else None,
        found[-1].key if more else None,
        newest,
    )


def count_newer(wanted: Filter, key: int, cap: int = 99) -> int:
    """Count the instances since a page was rendered, up to the cap."""
    return matching(wanted).filter(key__gt=key).order_by()[:cap].count()


def rows_by_key(keys: Sequence[int]) -> list[Instance]:
    """Read the rows that a page shows, in its order."""
    found: dict[int, Any] = {row.key: row for row in without_values().filter(key__in=keys)}
    return [found[key] for key in keys if key in found]


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
