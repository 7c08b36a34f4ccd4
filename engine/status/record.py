"""Everything recorded of an instance in one generation: the only reader for pages, commands and programs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db.models import Q, QuerySet

from engine.models import Attempt, Audit, Event, Instance, Step
from engine.status.facts import StatusFacts
from engine.status.gathering import Present, calls_of_present, facts_of, present_of, without_values
from engine.status.generations import Generations
from engine.status.prepared import Call, Prepared, together
from engine.status.sentences import status_line
from engine.status.sentences.sentence import Sentence
from engine.status.snapshot import Snapshot
from engine.status.steps import (
    attempts_by_step,
    calls_of_newest,
    newest_of,
    read_old_milestones,
    steps_of,
)

R = TypeVar("R")

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


def read(
    shown: Snapshot,
    steps: Sequence[Step],
    *,
    limits: Limits,
    with_payloads: bool,
    relations: Collection[str] | None = None,
) -> Record:
    """Read everything that belongs to an instance and to these of its steps, with a fixed number of queries.

    `relations` are the workflows whose instances count as parent or children; by default all. If it is given, the
    status line names no other instance.
    """
    found = together(*_calls_of(shown.instance, limits, with_payloads=with_payloads))
    attempts = attempts_by_step(shown.instance, steps)
    return _record(shown, steps, attempts, found, limits, has_all_steps=False, relations=relations)


def read_newest(
    shown: Snapshot,
    most_steps: int,
    *,
    limits: Limits,
    with_payloads: bool,
    relations: Collection[str] | None = None,
) -> tuple[Record, int]:
    """Read the same of an instance and of its newest steps, and return it with the number of all steps.

    With payloads, the steps have their outputs, too.
    """
    instance = shown.instance
    newest, tried, *found = together(
        *calls_of_newest(instance, most_steps, full=with_payloads),
        *_calls_of(instance, limits, with_payloads=with_payloads),
    )
    steps, attempts = newest_of(instance, newest, tried)
    total = steps_of(instance).count() if len(steps) == most_steps else len(steps)
    read_old_milestones(instance, steps)
    has_all_steps = len(steps) == total
    record = _record(shown, steps, attempts, found, limits, has_all_steps=has_all_steps, relations=relations)
    return record, total


def _calls_of(instance: Instance, limits: Limits, *, with_payloads: bool) -> list[Call[Any]]:
    """Return the queries for what `_record` finds, in this order."""
    return [
        _EVENTS.call(instance.key, limit=limits.events + 1, with_payloads=with_payloads),
        _ACTIONS.call(instance.key, limit=limits.actions),
        *calls_of_present(instance),
    ]


def _record(
    shown: Snapshot,
    steps: Sequence[Step],
    attempts: Mapping[int, Sequence[Attempt]],
    found: Sequence[Sequence[Any]],
    limits: Limits,
    *,
    has_all_steps: bool,
    relations: Collection[str] | None,
) -> Record:
    """Put together what was read. If these are all steps of the generation, what they tell is not read again."""
    instance = shown.instance
    newest_events, actions, *present = found
    events, has_more_events = _cut(newest_events, limits.events)
    known = steps if has_all_steps else None
    children: Sequence[Instance] = []
    children_total = 0
    if known is None or any(step.kind == "child" for step in known):
        children, children_total = _newest_children(instance, limits.children, relations)
    facts = _facts(shown, known, present_of(*present))
    return Record(
        instance=instance,
        generations=shown.generations,
        facts=facts if relations is None else facts.without_relatives(),
        steps=steps,
        attempts=attempts,
        events=events,
        parent=_parent_of(instance, relations),
        children=children,
        children_total=children_total,
        audit=actions,
        has_more_events=has_more_events,
    )


def events_of(instance: Instance, *, with_payloads: bool = False) -> QuerySet[Event]:
    """Return the query for its events, newest first."""
    return _events(instance.key, with_payloads=with_payloads)


def _events(key: int, *, with_payloads: bool, limit: int | None = None) -> QuerySet[Event]:
    rows = Event.objects.filter(instance_id=key).order_by("-key")
    return (rows if with_payloads else rows.defer("payload"))[:limit]


def _actions(key: int, *, limit: int) -> QuerySet[Audit]:
    return Audit.objects.filter(instance_key=key).order_by("-key")[:limit]


def _first_children(key: int, *, limit: int) -> QuerySet[Instance]:
    return without_values().filter(parent_key=key, parent_generation=1).order_by("-key")[:limit]


_EVENTS, _ACTIONS, _FIRST_CHILDREN = Prepared(_events), Prepared(_actions), Prepared(_first_children)


def _parent_of(instance: Instance, relations: Collection[str] | None) -> Instance | None:
    """Return the instance that started it, if any and if it still exists."""
    if instance.parent_key is None:
        return None
    rows = Instance.objects.only("key", "workflow", "id", "generation", "status")
    found = rows.filter(key=instance.parent_key).first()
    return found if found is None or relations is None or found.workflow in relations else None


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


def _newest_children(
    instance: Instance, limit: int, relations: Collection[str] | None
) -> tuple[Sequence[Instance], int]:
    """Return the newest children, and the number of all."""
    if instance.generation == 1 and relations is None:
        children, has_more = _cut(_FIRST_CHILDREN.rows(instance.key, limit=limit + 1), limit)
        return children, _children_of(instance).count() if has_more else len(children)
    born = _children_of(instance)
    if relations is not None:
        born = born.filter(workflow__in=relations)
    children, has_more = _cut(list(born.order_by("-key")[: limit + 1]), limit)
    return children, born.count() if has_more else len(children)


def _cut(found: Sequence[R], limit: int) -> tuple[Sequence[R], bool]:
    return found[:limit], len(found) > limit


def _facts(shown: Snapshot, steps: Sequence[Step] | None, present: Present) -> StatusFacts:
    """Return the facts of the generation. One that keeps steps has the start time of the one that ran them."""
    facts, those = facts_of(shown.instance, steps, present), shown.generations
    if not those.is_past:
        return facts
    began_at = those.began.at if those.began is not None else None
    began_at = began_at or shown.instance.started_at or shown.instance.created_at
    return replace(facts, began_at=began_at, last_action=those.terminated)
