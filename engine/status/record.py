"""Everything recorded of an instance in one generation: the only reader for pages, commands and programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from engine.models import Attempt, Audit, Event, Instance, Step
from engine.status.facts import StatusFacts
from engine.status.gathering import facts_of, without_values
from engine.status.generations import Generations
from engine.status.sentences import status_line
from engine.status.sentences.sentence import Sentence
from engine.status.snapshot import Snapshot
from engine.status.steps import attempts_by_step, steps_of

KEPT_CHILDREN = 51  # at most that are found where a restart has kept their steps


@dataclass(frozen=True, slots=True)
class Limits:
    """The maximum number of rows of each kind; the newest are read."""

    events: int
    children: int
    actions: int


@dataclass(frozen=True, slots=True)
class Record:
    """An instance in one generation, with its newest events, children and actions, newest first."""

    instance: Instance
    generations: Generations
    facts: StatusFacts
    steps: Sequence[Step]
    attempts: Mapping[int, Sequence[Attempt]]  # by step number
    events: Sequence[Event]
    parent: Instance | None
    children: Sequence[Instance]
    children_total: int
    audit: Sequence[Audit]
    has_more_events: bool

    @property
    def is_past(self) -> bool:
        """Whether this is an earlier generation, which is read-only."""
        return self.generations.is_past

    @property
    def began_at(self) -> datetime:
        return self.facts.began_at or self.instance.created_at

    @property
    def took(self) -> timedelta | None:
        finished = self.instance.finished_at
        return finished - self.began_at if finished else None

    @property
    def status_line(self) -> Sentence:
        """Return the state of this generation, or how it ended."""
        those = self.generations
        if those.is_past and those.cut_short_by is not None:
            before = those.cut_short_by.before.replace("_", " ")
            return (f"It was {before} when generation {those.shown + 1} began, which ended it.",)
        return status_line.status_line(self.facts)

    def count_events(self) -> int:
        """Return their number, with a query if there are more than were read."""
        return events_of(self.instance).count() if self.has_more_events else len(self.events)


def read(shown: Snapshot, steps: Sequence[Step], *, limits: Limits, with_payloads: bool) -> Record:
    """Read everything that belongs to an instance and to these of its steps, with a fixed number of queries."""
    instance, born = shown.instance, _children_of(shown.instance)
    events, has_more_events = _newest(events_of(instance, with_payloads=with_payloads), limits.events)
    children, has_more_children = _newest(born.order_by("-key"), limits.children)
    return Record(
        instance=instance,
        generations=shown.generations,
        facts=_facts(shown),
        steps=steps,
        attempts=attempts_by_step(instance, steps),
        events=events,
        parent=_parent_of(instance),
        children=children,
        children_total=born.count() if has_more_children else len(children),
        audit=list(Audit.objects.filter(instance_key=instance.key).order_by("-key")[: limits.actions]),
        has_more_events=has_more_events,
    )


def events_of(instance: Instance, *, with_payloads: bool = False) -> QuerySet[Event]:
    """Return the query for its events, newest first."""
    rows = Event.objects.filter(instance_id=instance.key).order_by("-key")
    return rows if with_payloads else rows.defer("payload")


def _parent_of(instance: Instance) -> Instance | None:
    """Return the instance that started it, if any and if it still exists."""
    if instance.parent_key is None:
        return None
    rows = Instance.objects.only("key", "workflow", "id", "generation", "status")
    return rows.filter(key=instance.parent_key).first()


def _children_of(instance: Instance) -> QuerySet[Instance]:
    """Return what this generation started, and what the steps that it keeps started."""
    started = Q(parent_generation=instance.generation)
    for generation, seq in _kept_children(instance):
        started |= Q(parent_generation=generation, parent_step=seq)
    return without_values().filter(started, parent_key=instance.key)


def _kept_children(instance: Instance) -> list[tuple[int, int]]:
    """Return the kept steps that have a child: the generation in which they ran, and their numbers."""
    if instance.generation == 1:
        return []
    kept = steps_of(instance).filter(kind="child", kept_from__isnull=False).order_by("-seq")
    rows = kept.only("kept_from", "seq")[:KEPT_CHILDREN]
    return [(step.kept_from, step.seq) for step in rows if step.kept_from is not None]


def _newest(rows: QuerySet[Any], limit: int) -> tuple[Sequence[Any], bool]:
    found = list(rows[: limit + 1])
    return found[:limit], len(found) > limit


def _facts(shown: Snapshot) -> StatusFacts:
    """Return the facts of the generation. One that keeps steps has the start time of the one that ran them."""
    facts, those = facts_of(shown.instance), shown.generations
    if not those.is_past:
        return facts
    began_at = those.began.at if those.began is not None else None
    began_at = began_at or shown.instance.started_at or shown.instance.created_at
    return replace(facts, began_at=began_at, last_action=those.terminated)
